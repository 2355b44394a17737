"""What became of the rows of an ingest, in numbers, and the one place that says them in words.

Source: clause ING-46 in ``spec/ingest.md``; ODF OperationType.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from odf_engines.contract import IngestResponse
from odf_node.wording import count_of
from odf_protocol.events import MergeStrategy, MergeStrategyChangelogStream, MergeStrategyUpsertStream

_APPEND, _RETRACT, _CORRECT_TO = 0, 1, 3  # places in ``rows_by_operation``


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """What became of rows.

    Attributes:
        added: Rows that the dataset did not have.
        corrected: Rows that have other values now; each is two rows of the slice.
        retracted: Rows that the dataset has no more.
        unchanged: Rows that were taken and change nothing: the dataset says so already, or a later row of the same
            batch says otherwise. None where a preprocess query makes other rows of the records.
        quarantined: Rows that were not taken.
        left_out: Records that a converter left out (CONV-7).
        ignored: How many records have a field that no column names, by its name (ING-49).
        kept: Current rows that a snapshot lacks and that stay, as it has rows that cannot be read (ING-48).
        unread: Names of files of an archive beside the one that was read, where the manifest names none (ING-49).
    """

    added: int = 0
    corrected: int = 0
    retracted: int = 0
    unchanged: int | None = 0
    quarantined: int = 0
    left_out: int = 0
    kept: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @classmethod
    def of_response(cls, response: IngestResponse, merge: MergeStrategy, *, has_query: bool) -> Self:
        """Count what an engine made of a batch."""
        interval, operations = response.offset_interval, response.statistics.rows_by_operation
        written = 0 if interval is None else interval.row_count
        if operations is None:
            operations = (written, 0, 0, 0)
        added, retracted, corrected = operations[_APPEND], operations[_RETRACT], operations[_CORRECT_TO]
        # What the source itself takes back is a row of it; what a snapshot lacks is none.
        stated = retracted if isinstance(merge, MergeStrategyUpsertStream | MergeStrategyChangelogStream) else 0
        # Of a changelog both rows of a correction are rows of the source.
        stated += operations[2] if isinstance(merge, MergeStrategyChangelogStream) else 0
        rest = response.statistics.rows_in - response.quarantined_rows - response.left_out_rows
        return cls(
            added=added,
            corrected=corrected,
            retracted=retracted,
            unchanged=None if has_query else max(rest - added - corrected - stated, 0),
            quarantined=response.quarantined_rows,
            left_out=response.left_out_rows,
            kept=response.kept_rows,
            ignored=response.ignored_fields,
        )

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` gave."""
        numbers = {name: plain[f"{name}Rows"] for name in (*CHANGES, "quarantined", "kept")}
        return cls(
            **numbers,
            left_out=plain["leftOutRows"],
            ignored=plain["ignoredFields"],
            unread=tuple(plain["unreadFiles"]),
        )

    def plus(self, later: Self) -> Self:
        """Add those of the next batch."""
        unchanged = None if self.unchanged is None or later.unchanged is None else self.unchanged + later.unchanged
        return type(self)(
            added=self.added + later.added,
            corrected=self.corrected + later.corrected,
            retracted=self.retracted + later.retracted,
            unchanged=unchanged,
            quarantined=self.quarantined + later.quarantined,
            left_out=self.left_out + later.left_out,
            kept=self.kept + later.kept,
            ignored=dict(Counter(self.ignored) + Counter(later.ignored)),
            unread=tuple(dict.fromkeys((*self.unread, *later.unread))),
        )

    def describe(self, *, would: bool = False) -> str:
        """Say what changed: "200 rows added, 5,000 retracted"; what stands in quarantine has a line of its own."""
        return ", ".join(self._iter_parts("would be " if would else "")) or "no rows"

    def _iter_parts(self, verb: str) -> Iterator[str]:
        is_first = True
        for name in CHANGES:
            number = getattr(self, name)
            if number:
                yield f"{count_of(number, 'row')} {verb}{name}" if is_first else f"{number:,} {name}"
                is_first = False

    def describe_ignored(self) -> str:
        """Say which fields no column names, and how many records have each; empty where all have a column."""
        shown = list(self.ignored.items())[:_SHOWN_FIELDS]
        reported = ", ".join(f"{name!r} of {count_of(rows, 'record')}" for name, rows in shown if name)
        more = len(self.ignored) - len(shown)
        return f"{reported}{f' and {more} more' if more > 0 else ''}"

    def describe_unread(self) -> str:
        """Name the files that nobody read; empty where there are none."""
        shown = ", ".join(repr(name[:_SHOWN_CHARACTERS]) for name in self.unread[:_SHOWN_FIELDS])
        more = len(self.unread) - _SHOWN_FIELDS
        return f"{shown}{f' and {more} more' if more > 0 else ''}"

    def describe_whole(self) -> str:
        """Say in a line of a log what changed, and which fields and files are in no row (ING-49)."""
        ignored, unread = self.describe_ignored(), self.describe_unread()
        left = [f"in no column: {ignored}"] if ignored else []
        left += [f"not read: {unread}"] if unread else []
        return "; ".join((self.describe(), *left))

    def to_json(self) -> dict[str, object]:
        """Give them as plain values."""
        return {
            "addedRows": self.added,
            "correctedRows": self.corrected,
            "retractedRows": self.retracted,
            "unchangedRows": self.unchanged,
            "quarantinedRows": self.quarantined,
            "leftOutRows": self.left_out,
            "keptRows": self.kept,
            "ignoredFields": dict(self.ignored),
            "unreadFiles": [name[:_SHOWN_CHARACTERS] for name in self.unread[:_MAX_UNREAD]],
        }


CHANGES: Final = ("added", "corrected", "retracted", "unchanged")
_SHOWN_CHARACTERS: Final = 80  # guess: of a name that somebody else chose
_MAX_UNREAD: Final = 100  # guess: as many names as of fields that are ignored
_SHOWN_FIELDS: Final = 10  # guess: as many as a line of a terminal or two have room for
