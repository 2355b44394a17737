"""What is wrong with bad rows, counted: the commonest reasons, and how many rows have an error of each code.

Source: spec/ingest.md ING-6.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.ingest.quarantined_rows import QuarantinedRow, iter_batches, lengths_of
from odf_engines.ingest_parts import MAX_CODES, MAX_REASONS, QuarantineReason

_SHOWN_CHARACTERS = 100  # of a value in a report; the row itself stands in the file  # guess
_ELEMENT = re.compile(r"\[[0-9]+\]")
_MAX_KINDS = 1000  # guess: a table of some hundred columns with a few kinds of errors each


@dataclass(slots=True)
class Reasons:
    """Counts what is wrong with rows; errors of one kind in one column are one reason."""

    codes: Counter[str] = field(default_factory=Counter)
    _rows: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    _first: dict[tuple[str | None, str], QuarantineReason] = field(default_factory=dict)

    def add(self, records: pa.Array, lines: pa.Array, lists: pa.ListArray, is_warning: pa.Array) -> None:
        """Count the errors of some rows, without what does not keep them away.

        Args:
            records: Number of each row, if it has one.
            lines: Where it stands.
            lists: The errors of each, with message, column, value and code.
            is_warning: Of each error.
        """
        errors = lists.flatten()
        stated = {name: errors.field(name) for name in ("message", "column", "value", "code")}
        stated["row"] = pa.array(np.repeat(np.arange(len(lists)), lengths_of(lists)))
        table = pa.table(stated).filter(pc.invert(is_warning))
        if not table.num_rows:
            return
        self._add_codes(table)
        column = table.column("column")
        if pc.any(pc.match_substring(column, "[")).as_py():
            column = pc.replace_substring_regex(column, _ELEMENT.pattern, "[]")
        table = table.append_column("kind", column).append_column("place", pa.array(np.arange(table.num_rows)))
        kinds = table.group_by(["kind", "message"]).aggregate([("row", "count_distinct"), ("place", "min")])
        # Texts of a library may differ with each row: what is seen late is not among the commonest.
        for kind in kinds.sort_by("place_min").to_pylist():
            key = kind["kind"], kind["message"]
            if key not in self._first:
                if len(self._first) >= _MAX_KINDS:
                    continue
                self._first[key] = _reason_at(table, kind["place_min"], records, lines)
            self._rows[key] += kind["row_count_distinct"]

    def _add_codes(self, table: pa.Table) -> None:
        found = table.group_by("code", use_threads=False).aggregate([("row", "count_distinct")])
        for each in found.to_pylist():
            if each["code"] in self.codes or len(self.codes) < MAX_CODES:
                self.codes[each["code"]] += each["row_count_distinct"]

    def list_commonest(self) -> tuple[QuarantineReason, ...]:
        """List the commonest reasons, most rows first."""
        return tuple(replace(self._first[key], rows=rows) for key, rows in self._rows.most_common(MAX_REASONS))


def _reason_at(table: pa.Table, place: int, records: pa.Array, lines: pa.Array) -> QuarantineReason:
    (error,) = table.slice(place, 1).to_pylist()
    value, row = error["value"], error["row"]
    return QuarantineReason(
        rows=0,
        reason=error["message"],
        column=error["column"],
        value=None if value is None else value[:_SHOWN_CHARACTERS],
        record=records[row].as_py(),
        line=lines[row].as_py(),
    )


def list_reasons(rows: Iterable[QuarantinedRow]) -> tuple[QuarantineReason, ...]:
    """List the commonest things that are said of rows that are not written; most rows first."""
    reasons = Reasons()
    for batch in iter_batches(rows):
        lists = batch.column("errors")
        lines = pa.nulls(batch.num_rows, pa.int64())
        reasons.add(batch.column("record"), lines, lists, lists.flatten().field("is_warning"))
    return reasons.list_commonest()
