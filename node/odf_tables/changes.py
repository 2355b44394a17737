"""What changed between two versions of a table: each operation, or what is left of all of them.

Both are read from the slices between the versions alone, however many rows the table has. A row that is taken away and
given again is no difference: rows are counted by their values, as those of ``NAME__state`` are.

Source: clauses TABLE-10 and TABLE-11 in ``spec/plug-ins/tables.md``; names of columns as in Delta Lake's change data
feed; QUERY-3 in ``spec/query.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from odf_engines.contract import QueryTable
from odf_node.datasets.row_windows import find_keys
from odf_node.errors import UsageError
from odf_node.front.table_operations import ChangedRows, TableDifference
from odf_tables.frames import list_fields
from odf_tables.queries import EVENTS, Relations, quote
from odf_tables.versions import iter_row_versions

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
_BY_OPERATION: Final = (INSERT, DELETE, BEFORE, AFTER)
"""By the number of the operation. Source: ODF OperationType."""
_INVERSE: Final = {INSERT: DELETE, DELETE: INSERT, BEFORE: AFTER, AFTER: BEFORE}
_INSTANT: Final = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """Between versions of one dataset."""

    relations: Relations

    def read(self, since: int, until: int | None = None) -> pa.Table:
        """Read each change in order: its kind, version and time, then the row.

        Args:
            since: The version behind which; -1: from the beginning.
            until: The version up to which; None: the newest.

        Raises:
            UsageError: There is no such version.
        """
        since, until = self._interval(since, until)
        view = self.relations.view()
        if view.schema is None:
            return pa.table({})
        columns = [each.name for each in list_fields(view)]
        self._require_free(columns)
        known = view.vocabulary
        schema = pa.schema(
            [
                pa.field(CHANGE_TYPE, pa.string(), nullable=False),
                pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
                pa.field(COMMIT_TIMESTAMP, _INSTANT, nullable=False),
                *list_fields(view),
            ]
        )
        ends = [*iter_row_versions(self.relations.node, self.relations.record, since=since, until=until)]
        if not ends:
            return schema.empty_table()
        names = ", ".join(map(quote, (known.offset, known.op, known.system_time, *columns)))
        sql = f"SELECT {names} FROM {EVENTS} ORDER BY {quote(known.offset)}"  # noqa: S608 - quoted
        found = self.relations.ask(sql, [self.relations.between(since, until)])
        places = np.searchsorted([end for end, _ in ends], found.column(known.offset).to_numpy())
        numbers = np.array([number for _, number in ends], np.int64)[places]
        kinds = pa.DictionaryArray.from_arrays(found.column(known.op).combine_chunks().cast(pa.int32()), _BY_OPERATION)
        return pa.table(
            [
                kinds.dictionary_decode(),
                pa.array(numbers),
                found.column(known.system_time),
                *map(found.column, columns),
            ],
            names=schema.names,
        ).cast(schema)

    def compare(self, since: int, until: int | None = None, *, max_rows: int | None = None) -> TableDifference:
        """Compare the current rows of two versions, in either direction.

        Args:
            since: The one.
            until: The other; None: the newest.
            max_rows: Of these many rows the difference shows the values; None: all.

        Raises:
            UsageError: There is no such version.
        """
        newest = self.relations.get_newest()
        until = newest if until is None else self.relations.require_version(until)
        since = self.relations.require_version(since)
        first, last = min(since, until), max(since, until)
        view = self.relations.view()
        key = find_keys(view)
        fields = [] if view.schema is None else list_fields(view)
        self._require_free([each.name for each in fields])
        schema = pa.schema([pa.field(CHANGE_TYPE, pa.string(), nullable=False), *fields])
        has_rows = any(
            True for _ in iter_row_versions(self.relations.node, self.relations.record, since=first, until=last)
        )
        if not has_rows:
            return TableDifference(since, until, key, ChangedRows(0, 0, 0), schema.empty_table())
        tables = [self.relations.between(first, last)]
        sql = self._difference(fields, key, is_inverse=since > until)
        counts = self._count(sql, tables)
        order = ", ".join(quote(each.name) for each in fields if not pa.types.is_nested(each.type))
        by_key = ", ".join([*map(quote, key), f"{quote(CHANGE_TYPE)} DESC" if key else quote(CHANGE_TYPE), order])
        rows = self.relations.ask(f"SELECT * FROM ({sql}) ORDER BY {by_key}", tables, max_rows=max_rows)  # noqa: S608
        changed = ChangedRows(counts.get(INSERT, 0), counts.get(AFTER, 0), counts.get(DELETE, 0))
        return TableDifference(since, until, key, changed, rows.cast(schema))

    def _count(self, sql: str, tables: Sequence[QueryTable]) -> dict[str, int]:
        kind = quote(CHANGE_TYPE)
        counted = f"SELECT {kind}, count(*) AS odf_count FROM ({sql}) GROUP BY {kind}"  # noqa: S608 - quoted
        found = self.relations.ask(counted, tables)
        return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))

    def _difference(self, fields: Sequence[pa.Field], key: Sequence[str], *, is_inverse: bool) -> str:
        """Write the query for the rows that are left, each with what became of it."""
        columns = ", ".join(quote(each.name) for each in fields)
        op = quote(self.relations.view().vocabulary.op)
        given = f"sum(CASE WHEN {op} IN (0, 3) THEN 1 ELSE -1 END)"
        net = f"SELECT {columns}, {given} AS odf_n FROM {EVENTS} GROUP BY {columns} HAVING {given} <> 0"  # noqa: S608
        each = f"SELECT *, unnest(array_repeat(0, abs(odf_n))) AS odf_one FROM ({net})"  # noqa: S608
        kinds = {name: _INVERSE[name] if is_inverse else name for name in _BY_OPERATION}
        came, went = f"'{kinds[INSERT]}'", f"'{kinds[DELETE]}'"
        if not key:
            kind = f"CASE WHEN odf_n > 0 THEN {came} ELSE {went} END"
            return f"SELECT {kind} AS {quote(CHANGE_TYPE)}, {columns} FROM ({each})"  # noqa: S608
        of_key = f"OVER (PARTITION BY {', '.join(map(quote, key))})"
        both = f"SELECT *, min(odf_n) {of_key} < 0 AND max(odf_n) {of_key} > 0 AS odf_both FROM ({each})"  # noqa: S608
        kind = (
            f"CASE WHEN odf_n > 0 THEN (CASE WHEN odf_both THEN '{kinds[AFTER]}' ELSE {came} END)"
            f" ELSE (CASE WHEN odf_both THEN '{kinds[BEFORE]}' ELSE {went} END) END"
        )
        return f"SELECT {kind} AS {quote(CHANGE_TYPE)}, {columns} FROM ({both})"  # noqa: S608

    def _interval(self, since: int, until: int | None) -> tuple[int, int]:
        until = self.relations.get_newest() if until is None else self.relations.require_version(until)
        if since != -1:
            self.relations.require_version(since)
        if since > until:
            raise UsageError(f"changes are read forwards: expected a version up to {until}, found {since}")
        return since, until

    @staticmethod
    def _require_free(columns: Sequence[str]) -> None:
        taken = {CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP} & {*columns}
        if taken:
            raise UsageError(f"a column is called {min(taken)}, as changes call theirs; ask by SQL instead")
