"""Drafting a manifest: from nothing, or from the data that it is to describe.

Source: clause ING-24 in ``spec/ingest.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_node.errors import UsageError
from odf_node.ingest.drafts.columns import Column, guess_columns
from odf_node.ingest.drafts.keys import Key, find_key
from odf_node.ingest.drafts.manifest_text import draft_lines, template_text
from odf_node.ingest.drafts.records import find_records
from odf_node.ingest.drafts.texts import decode
from odf_node.ports.samples import SampleReader
from odf_node.text_encodings import ENCODINGS, find_codec
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.manifest import parse_snapshots
from odf_protocol.names import DatasetName

__all__ = ["Draft", "Drafting"]

SAMPLE_BYTES: Final = 4 * 1024**2
"""Of a file that are looked at, unpacked.  # guess: most files as a whole"""

_PARQUET: Final = b"PAR1"
_MOST_COLUMNS: Final = 2_000  # guess: more are another format than it looks


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest, written.

    Attributes:
        text: YAML with comments.
        doubts: How many of its lines are guesses that the data could not settle.
        is_polled: The dataset fetches its data itself; else they are handed in.
    """

    text: str
    doubts: int = 0
    is_polled: bool = False


@dataclass(frozen=True, slots=True)
class Drafting:
    """The use case behind ``odf-node new``."""

    samples: SampleReader

    def draft_template(self, name: str) -> Draft:
        """Write a manifest to be filled in.

        Raises:
            MalformedError: It is no name.
        """
        return Draft(template_text(str(DatasetName.parse(name))))

    async def draft_from(self, name: str, source: str, *, encoding: str | None = None) -> Draft:
        """Write a manifest for the data of a file or URL, of which the beginning is read.

        Args:
            name: Of the dataset.
            source: Where the data are.
            encoding: Of the text, where somebody knows it.

        Raises:
            MalformedError: It is no name, or there is nothing to guess from.
            UsageError, UnsupportedError: An encoding, or a format, that is not read here.
            SourceNotFoundError, SourceUnavailableError: As ``SampleReader.read``.
        """
        dataset = str(DatasetName.parse(name))
        if encoding is not None and find_codec(encoding) is None:
            raise UsageError(f"--encoding {encoding}: known are {', '.join(ENCODINGS)}")
        sample = await self.samples.read_sample(source, limit_bytes=SAMPLE_BYTES)
        if sample.content.startswith(_PARQUET):
            raise UnsupportedError(
                "format to draft from",
                found=f"{sample.shown_as}: Parquet",
                supported="CSV, JSON; a Parquet file says "
                "its columns itself: 'odf-node new NAME' gives a template, in which 'read: {kind: Parquet}' is enough",
            )
        decoded = decode(sample.content, is_whole=sample.is_whole, encoding=encoding)
        records = find_records(decoded.text, is_whole=sample.is_whole, name=sample.shown_as)
        _check_names(records.names, sample.shown_as)
        columns, formats = guess_columns(records)
        key = find_key(columns, records.columns)
        doubts = [*([decoded.doubt] if decoded.doubt else []), *records.doubts]
        if records.broken:
            doubts.append(f"{count_of(records.broken, 'record')} cannot be read so, and would go to quarantine")
        lines = list(
            draft_lines(
                dataset,
                sample,
                records,
                columns,
                encoding=decoded.encoding,
                formats=formats,
                key=key,
                event_time=_choose_event_time(columns, key),
                doubts=doubts,
            )
        )
        text = "\n".join(lines) + "\n"
        # What the file's author wrote stands in it: it has to be the manifest that was meant, and nothing else.
        parse_snapshots(text, source_name="the draft")
        is_polled = not sample.is_local or sample.compression is not None
        return Draft(text, sum("# ? " in line for line in lines), is_polled)


def _check_names(names: Sequence[str], shown_as: str) -> None:
    """Refuse columns that no manifest can name.

    Raises:
        MalformedError: There are none or too many, or one is called as another, or has no name.
    """
    if not 0 < len(names) <= _MOST_COLUMNS:
        raise MalformedError("data", where=shown_as, expected=f"1 to {_MOST_COLUMNS} columns", found=str(len(names)))
    for place, name in enumerate(names, 1):
        if not name:
            raise MalformedError(
                "header", where=shown_as, expected="a name for each column", found=f"none in field {place}"
            )
        if names.count(name) > 1:
            raise MalformedError(
                "header", where=shown_as, expected="a name of its own for each column", found=f"{name!r} twice"
            )


def _choose_event_time(columns: Sequence[Column], key: Key | None) -> Column | None:
    """Choose what says when a row happened: what is called so, or is of the key, or stands first."""
    times = [column for column in columns if column.is_time]
    in_key = key.names if key else ()
    return min(
        times, key=lambda each: (each.name != "event_time", each.name not in in_key, each.has_nulls), default=None
    )
