"""What changed between two versions of a table: each operation, or what is left of all of them.

Both are read from the slices between the versions alone, however many rows the table has. A row that is taken away and
given again is no difference: rows are counted by their values, as those of ``NAME__state`` are.

Source: clauses TABLE-10 and TABLE-11 in ``spec/plug-ins/tables.md``; names of columns as in Delta Lake's change data
feed; QUERY-3 in ``spec/query.md``.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from odf_engines.contract import QueryTable
from odf_engines.reading.files import opened_rows
from odf_node.datasets.chains import iter_decoded
from odf_node.datasets.changelogs import data_of
from odf_node.datasets.row_windows import find_keys
from odf_node.errors import UsageError
from odf_node.front.table_operations import ChangedRows, TableDifference
from odf_protocol.events import AddData, ExecuteTransform
from odf_tables.frames import list_fields
from odf_tables.queries import EVENTS, Relations, free_name, quote, select_forms
from odf_tables.versions import iter_row_versions

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
_BY_OPERATION: Final = (INSERT, DELETE, BEFORE, AFTER)
"""By the number of the operation. Source: ODF OperationType."""
_INVERSE: Final = {INSERT: DELETE, DELETE: INSERT, BEFORE: AFTER, AFTER: BEFORE}
_INSTANT: Final = pa.timestamp("ms", "UTC")
_MAX_VERSIONS: Final = 10_000  # guess: a second of reading blocks


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
        since, until = self.check_interval(since, until)
        view = self.relations.view()
        if view.schema is None:
            return pa.table({})
        return pa.Table.from_batches(self.iter_batches(since, until), self.get_schema())

    def get_schema(self) -> pa.Schema:
        """Give the columns of changes.

        Raises:
            UsageError: A column of the table is called as one of theirs.
        """
        fields = list_fields(self.relations.view())
        self._require_free([each.name for each in fields])
        own = [
            pa.field(CHANGE_TYPE, pa.string(), nullable=False),
            pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
            pa.field(COMMIT_TIMESTAMP, _INSTANT, nullable=False),
        ]
        return pa.schema([*own, *fields])

    def iter_batches(self, since: int, until: int) -> Iterator[pa.RecordBatch]:
        """Yield the changes between two versions, slice by slice, each read in the sandbox."""
        schema, known = self.get_schema(), self.relations.view().vocabulary
        for version, path in self.relations.list_files(since, until):
            with opened_rows(path) as (_, batches):
                for batch in batches:
                    kinds = pa.DictionaryArray.from_arrays(batch.column(known.op).cast(pa.int32()), _BY_OPERATION)
                    given = {
                        CHANGE_TYPE: kinds.dictionary_decode(),
                        COMMIT_VERSION: pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows),
                        COMMIT_TIMESTAMP: batch.column(known.system_time),
                    }
                    columns = [given[f.name] if f.name in given else batch.column(f.name) for f in schema]
                    fitted = [_cast(column, field.type) for column, field in zip(columns, schema, strict=True)]
                    yield pa.RecordBatch.from_arrays(fitted, schema=schema)

    def get_size_bytes(self, version: int) -> int:
        """Return how many bytes the slice of a version has."""
        block = next(iter_decoded(self.relations.node.store, self.relations.record.id, after=version - 1))
        return data_of(block).size

    def choose_end(self, since: int, max_rows: int) -> int:
        """Choose the version up to which an answer goes that has at most so many rows, or one version."""
        rows, until = 0, since
        ends = iter_decoded(self.relations.node.store, self.relations.record.id, after=since)
        for block in ends:
            event = block.event
            data = event.new_data if isinstance(event, AddData | ExecuteTransform) else None
            rows += 0 if data is None else data.offset_interval.row_count
            if rows > max_rows and until > since:
                break
            until = block.sequence_number
            if rows > max_rows or until - since >= _MAX_VERSIONS:
                break
        return until

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
        own = [pa.field(CHANGE_TYPE, pa.string(), nullable=False), pa.field(COMMIT_VERSION, pa.int64(), nullable=False)]
        schema = pa.schema([*own, *fields])
        ends = [*iter_row_versions(self.relations.node, self.relations.record, since=first, until=last)]
        if not ends:
            return TableDifference(since, until, key, ChangedRows(0, 0, 0), schema.empty_table())
        tables = [self.relations.between(first, last)]
        sql = self._difference(fields, key, is_inverse=since > until)
        counts = self._count(sql, tables)
        order = ", ".join(quote(each.name) for each in fields if not pa.types.is_nested(each.type))
        by_key = ", ".join([*map(quote, key), f"{quote(CHANGE_TYPE)} DESC" if key else quote(CHANGE_TYPE), order])
        rows = self.relations.ask(f"SELECT * FROM ({sql}) ORDER BY {by_key}", tables, max_rows=max_rows)  # noqa: S608
        changed = ChangedRows(counts.get(INSERT, 0), counts.get(AFTER, 0), counts.get(DELETE, 0))
        return TableDifference(since, until, key, changed, _with_versions(rows, ends).cast(schema))

    def _count(self, sql: str, tables: Sequence[QueryTable]) -> dict[str, int]:
        kind = quote(CHANGE_TYPE)
        counted = f"SELECT {kind}, count(*) AS odf_count FROM ({sql}) GROUP BY {kind}"  # noqa: S608 - quoted
        found = self.relations.ask(counted, tables)
        return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))

    def _difference(self, fields: Sequence[pa.Field], key: Sequence[str], *, is_inverse: bool) -> str:
        """Write the query for the rows that are left, each with what became of it."""
        columns = ", ".join(quote(each.name) for each in fields)
        known = self.relations.view().vocabulary
        op, offset = quote(known.op), quote(known.offset)
        given = f"sum(CASE WHEN {op} IN (0, 3) THEN 1 ELSE -1 END)"
        names = [each.name for each in fields]
        n, last, one, both = (free_name(each, names) for each in ("odf_n", "odf_last", "odf_one", "odf_both"))
        compared = f"SELECT {op}, {offset}, {select_forms(fields)} FROM {EVENTS}"  # noqa: S608 - quoted, as below
        net = (
            f"SELECT {columns}, {given} AS {n}, max({offset}) AS {last} FROM ({compared}) "  # noqa: S608
            f"GROUP BY {columns} HAVING {given} <> 0"
        )
        each = f"SELECT *, unnest(array_repeat(0, abs({n}))) AS {one} FROM ({net})"  # noqa: S608
        kinds = {name: _INVERSE[name] if is_inverse else name for name in _BY_OPERATION}
        came, went = f"'{kinds[INSERT]}'", f"'{kinds[DELETE]}'"
        shown = f"{last} AS {quote(COMMIT_VERSION)}, {columns}"  # an offset until ``_with_versions``
        if not key:
            kind = f"CASE WHEN {n} > 0 THEN {came} ELSE {went} END"
            return f"SELECT {kind} AS {quote(CHANGE_TYPE)}, {shown} FROM ({each})"  # noqa: S608
        of_key = f"OVER (PARTITION BY {', '.join(map(quote, key))})"
        paired = f"SELECT *, min({n}) {of_key} < 0 AND max({n}) {of_key} > 0 AS {both} FROM ({each})"  # noqa: S608
        kind = (
            f"CASE WHEN {n} > 0 THEN (CASE WHEN {both} THEN '{kinds[AFTER]}' ELSE {came} END)"
            f" ELSE (CASE WHEN {both} THEN '{kinds[BEFORE]}' ELSE {went} END) END"
        )
        return f"SELECT {kind} AS {quote(CHANGE_TYPE)}, {shown} FROM ({paired})"  # noqa: S608

    def check_interval(self, since: int, until: int | None) -> tuple[int, int]:
        """Check two versions between which changes are read forwards; ``until`` None: the newest.

        Raises:
            UsageError: There is no such version, or the second is before the first.
        """
        until = self.relations.get_newest() if until is None else self.relations.require_version(until)
        if since != -1:
            since = self.relations.require_version(since)
        if since > until:
            raise UsageError(f"changes are read forwards: expected a version up to {until}, found {since}")
        return since, until

    @staticmethod
    def _require_free(columns: Sequence[str]) -> None:
        taken = {CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP} & {*columns}
        if taken:
            raise UsageError(f"a column is called {min(taken)}, as changes call theirs; ask by SQL instead")


def _with_versions(rows: pa.Table, ends: Sequence[tuple[int, int]]) -> pa.Table:
    """Put the version of its block in the place of each offset, given the last offset of each block."""
    place = rows.schema.get_field_index(COMMIT_VERSION)
    last_offsets = [offset for offset, _ in ends]
    found = [ends[bisect_left(last_offsets, offset)][1] for offset in rows.column(place).to_pylist()]
    return rows.set_column(place, COMMIT_VERSION, pa.array(found, pa.int64()))


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)
