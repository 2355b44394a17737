"""Write a draft as YAML with comments.

Names and values of the file are untrusted text: in the document they are quoted, in comments they are escaped, so that
none of them ends a line.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from odf_drafts.columns import DraftColumn, TimeFormats
from odf_drafts.keys import Key
from odf_drafts.records import Records
from odf_drafts.samples import Sample
from odf_drafts.strategies import LARGEST_RETRACTED_SHARE, DraftStrategy, choose_strategy
from odf_node.ingest.declared_plug_ins import RULES_PATH
from odf_node.ingest.encodings import UTF_8
from odf_node.wording import UNSEEN, count_of
from odf_protocol.manifest.nodes import needs_quotes

__all__ = ["draft_lines", "template_text"]

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_ESCAPED: Final = re.compile(f"[\t\n\xa0\ufffe\uffff]|{UNSEEN.pattern}")
"""What YAML takes for a line end or no text, where it stands as it is, and what a reader would not see."""

_WIDTH: Final = 112


def scalar(text: str) -> str:
    """Write a text so that it is read as itself."""
    if _PLAIN.fullmatch(text) and not needs_quotes(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escape(escaped)}"'


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _escape_one(ord(found[0])), text)


def _escape_one(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def template_text(name: str) -> str:
    """Write a manifest to be filled in."""
    return _TEMPLATE.replace("NAME", name)


def draft_lines(
    name: str,
    sample: Sample,
    records: Records,
    columns: Sequence[DraftColumn],
    *,
    encoding: str,
    formats: TimeFormats,
    key: Key | None,
    event_time: DraftColumn | None,
    doubts: Sequence[str],
) -> Iterator[str]:
    """Yield the lines of a manifest; see ``Drafting``."""
    how_much = count_of(records.count, "record")
    part = f"all its {how_much}" if records.is_whole else f"its first {how_much}"
    yield from _comment(f"Guessed from {ascii(sample.shown_as)[1:-1]}, {part}.")
    yield from _comment("A line with '?' is a guess that the file could not settle: please look at these.")
    yield from ("kind: DatasetSnapshot", "version: 1", "content:", f"  name: {name}", "  kind: Root", "  metadata:")
    yield "    - kind: SetInfo"
    yield f"      description: {scalar(f'Data of {name}')}"
    yield "      # keywords: [one, another]"
    yield from _LICENCE.splitlines()
    is_pushed = sample.is_local and sample.compression is None
    yield from _push_lines() if is_pushed else _fetch_lines(sample)
    for doubt in doubts:
        yield from _comment(f"? {doubt}", "      ")
    yield from _read_lines(records, columns, encoding, formats)
    strategy = choose_strategy(key, event_time)
    yield from _merge_lines(strategy, key, event_time, records)
    yield from _rules_lines(records, columns, strategy)
    if event_time is not None and event_time.name != "event_time":
        yield "    - kind: SetVocab"
        others = [each.name for each in columns if each.is_time and each is not event_time]
        if others:
            yield from _comment(f"? when a row happened; it could also be {', '.join(others)!a}", "      ")
        yield f"      eventTimeColumn: {scalar(event_time.name)}"
    elif event_time is None:
        yield from _comment(
            "? no column says when a row happened: it gets the time of its ingest. If one does, name it: "
            "{kind: SetVocab, eventTimeColumn: NAME}",
            "    ",
        )


def _push_lines() -> Iterator[str]:
    yield from _comment(
        "Files are handed in with 'odf-node ingest'. To let 'odf-node pull' fetch them instead:", "    "
    )
    yield from _comment("- kind: SetPollingSource", "    ")
    yield from _comment("  fetch: {kind: Url, url: 'file:///folder/file.csv'}    # or https://...", "    ")
    yield from ("    - kind: AddPushSource", "      sourceName: default")


def _fetch_lines(sample: Sample) -> Iterator[str]:
    yield "    - kind: SetPollingSource"
    yield "      fetch:"
    yield "        kind: Url"
    if not sample.is_local and ("?" in sample.url or "@" in sample.url):
        yield from _comment("? a key in this address is published: write ${{ env.NAME }} in its place", "        ")
    yield f"        url: {scalar(sample.url)}"
    if sample.compression is not None:
        yield "      prepare:"
        yield "        - kind: Decompress"
        yield f"          format: {sample.compression.text}"
        if sample.entry is not None:
            others = ", ".join(map(repr, sample.others))[:300]
            yield from _comment(f"? of the files of the archive this is the largest; others: {others}", "          ")
            yield f"          subPath: {scalar(sample.entry)}"


def _read_lines(records: Records, columns: Sequence[DraftColumn], encoding: str, formats: TimeFormats) -> Iterator[str]:
    yield "      read:"
    yield f"        kind: {records.kind}"
    for option, value in records.options.items():
        yield f"        {option}: {str(value).lower() if isinstance(value, bool) else scalar(value)}"
    if encoding != UTF_8:
        yield f"        encoding: {encoding}"
    if formats.date:
        yield f"        dateFormat: {scalar(formats.date)}"
    if formats.timestamp:
        yield f"        timestampFormat: {scalar(formats.timestamp)}"
    if records.kind == "Parquet":
        found = ", ".join(f"{column.source} {column.read_type}" for column in columns)
        yield from _comment(f"The file says its columns itself: {found}", "        ")
        return
    yield "        schema:"
    yield "          fields:"
    for column in columns:
        for doubt in column.doubts:
            yield from _comment(f"? {doubt}", "            ")
        kind = f"{{kind: Option, inner: {_type(column.read_type)}}}"
        yield f"            - {{name: {scalar(column.source)}, type: {kind}}}"


def _rules_lines(records: Records, columns: Sequence[DraftColumn], strategy: DraftStrategy) -> Iterator[str]:
    """Yield the attachment: what takes the file apart, what is made of columns, what a snapshot may retract."""
    converters = list(_iter_converters(columns, records.total))
    if not converters and records.reader is None and strategy is not DraftStrategy.SNAPSHOT:
        return
    if converters:
        yield from _comment(
            "What the texts of some columns mean. A record that does not fit goes to quarantine, the others go on.",
            "    ",
        )
    yield from ("    - kind: SetAttachments", "      attachments:", "        kind: Embedded", "        items:")
    yield f"          - path: {RULES_PATH}"
    yield "            content: |"
    if strategy is DraftStrategy.SNAPSHOT:
        yield from _comment(
            "A file that lacks a larger share of the current rows than this is held, and asked about.", " " * 14
        )
        yield f"              largestRetractedShare: {LARGEST_RETRACTED_SHARE}"
    if records.reader is not None:
        stated = ", ".join(f"{name}: {_parameter(value)}" for name, value in records.reader.items())
        yield f"              reader: {{{stated}}}"
    if converters:
        yield "              converters:"
        yield from (f"                - {{{line}}}" for line in converters)


def _iter_converters(columns: Sequence[DraftColumn], total: tuple[int, str] | None) -> Iterator[str]:
    if total is not None:
        yield f"kind: LeaveOut, column: {scalar(columns[total[0]].source)}, values: [{scalar(total[1])}]"
    renamed = [f"{scalar(each.source)}: {scalar(each.name)}" for each in columns if each.name != each.source]
    if renamed:
        yield f"kind: Rename, columns: {{{', '.join(renamed)}}}"
    for nothing in dict.fromkeys(each.nothing for each in columns if each.nothing is not None):
        names = ", ".join(scalar(each.name) for each in columns if each.nothing == nothing)
        words = f", nulls: [{', '.join(map(scalar, nothing))}]" if nothing else ""
        yield f"kind: Trim, columns: [{names}]{words}"
    for column in columns:
        if column.cast is not None:
            stated = ", ".join(f"{name}: {_parameter(value)}" for name, value in column.cast.items())
            yield f"kind: Cast, column: {scalar(column.name)}, {stated}"


def _parameter(value: str | int | Sequence[str] | Mapping[str, str]) -> str:
    match value:
        case str():
            return scalar(value)
        case int():
            return str(value)
        case Mapping():
            return f"{{{', '.join(f'{scalar(name)}: {scalar(each)}' for name, each in value.items())}}}"
    return f"[{', '.join(map(scalar, value))}]"


def _merge_lines(
    strategy: DraftStrategy, key: Key | None, event_time: DraftColumn | None, records: Records
) -> Iterator[str]:
    yield "      # Snapshot: each file is all that is true now; what is missing in it is retracted."
    yield "      # Ledger: rows never change, and may be handed in again. UpsertStream: new and changed rows alone."
    yield "      # Append: new rows alone, each wanted."
    if key is None:
        reason = "no columns tell all rows apart" if records.count else "there are no rows yet"
        yield from _comment(f"? {reason}, so rows are appended; the others need a primaryKey", "      ")
        yield "      merge: {kind: Append}"
        return
    when = "" if event_time is None else event_time.name
    if strategy is DraftStrategy.APPEND:
        names = ", ".join(key.names)
        reason = f"rows have a time of day ({when!a}), so they are events, and {names!a} may come again with other ones"
        yield from _comment(
            f"? {reason}: rows are appended. If each file is whole: Snapshot, with a primaryKey", "      "
        )
        yield "      merge: {kind: Append}"
        return
    if not key.is_only_one:
        yield from _comment("? other columns would tell these rows apart as well", "      ")
    yield "      merge:"
    if strategy is DraftStrategy.LEDGER:
        yield from _comment(
            f"? rows have a time of day ({when!a}), so they are events: each file brings new ones. If they are "
            "corrected later: UpsertStream; if each file is whole: Snapshot",
            "        ",
        )
    else:
        yield from _comment("? each file could as well bring new rows alone: then Ledger or UpsertStream", "        ")
    yield f"        kind: {strategy}"
    yield f"        primaryKey: [{', '.join(map(scalar, key.names))}]"


def _type(kind: str) -> str:
    if not kind.startswith("Decimal"):
        return kind
    return f"{{kind: Decimal, precision: 18, scale: {kind.removeprefix('Decimal(').rstrip(')')}}}"


def _comment(text: str, indent: str = "") -> Iterator[str]:
    for line in textwrap.wrap(_escape(text), _WIDTH - len(indent), break_on_hyphens=False) or [""]:
        yield f"{indent}# {line}"


_LICENCE: Final = """\
    # What others may do with the data:
    # - kind: SetLicense
    #   shortName: CC-BY-4.0
    #   name: Creative Commons Attribution 4.0 International
    #   spdxId: CC-BY-4.0
    #   websiteUrl: https://creativecommons.org/licenses/by/4.0/"""

_TEMPLATE: Final = f"""\
# A dataset that files are handed to. 'odf-node new NAME --from FILE' guesses all this from data.
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Root
  metadata:
    - kind: SetInfo
      description: What these data are
      # keywords: [one, another]
{_LICENCE}
    # Files are handed in with 'odf-node ingest NAME FILE'. To let 'odf-node pull NAME' fetch them instead:
    # - kind: SetPollingSource
    #   fetch: {{kind: Url, url: 'https://example.org/data.csv'}}    # or file:///folder/data.csv
    #   (read and merge as below)
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        # separator: ";"
        # encoding: windows-1252
        # dateFormat: "%d.%m.%Y"
        schema:
          fields:
            # Without Option a value has to be there.
            - {{name: day, type: Date}}
            - {{name: item, type: String}}
            - {{name: count, type: {{kind: Option, inner: Int64}}}}
            - {{name: price, type: {{kind: Option, inner: {{kind: Decimal, precision: 18, scale: 2}}}}}}
      merge:
        # Snapshot: each file is all that is true now; what is missing in it is retracted.
        # Ledger: rows never change, and may be handed in again. UpsertStream: new and changed rows alone.
        # {{kind: Append}}: new rows alone, each wanted; it has no primaryKey.
        kind: Snapshot
        primaryKey: [day, item]
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: {RULES_PATH}
            content: |
              # A file that lacks a larger share of the current rows than this is held, and asked about.
              largestRetractedShare: {LARGEST_RETRACTED_SHARE}
    - kind: SetVocab
      # The column that says when a row happened.
      eventTimeColumn: day
"""
