"""What each write makes of a frame or a condition: rows with operations, and how they meet the current rows.

A write is planned anew with each attempt, over the head that its commit expects, so that a condition holds of the rows
that were current right before it.

Source: clause TABLE-3 in ``spec/plug-ins/tables.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from odf_node.datasets.row_windows import find_keys
from odf_node.errors import UsageError
from odf_protocol.comparison_form import has_floats
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyUpsertStream,
)
from odf_protocol.schema_arrow import rows_schema_of
from odf_tables.errors import SHOWN_ROWS, RowsRejectedError
from odf_tables.frames import fit_frame, list_fields, require_fitting, require_keys
from odf_tables.queries import (
    FRAME,
    NOW,
    THEN,
    Relations,
    check_condition,
    frame_table,
    free_name,
    quote,
    quote_forms,
    rows_where,
    select_forms,
)

_BATCH_ROWS: Final = 65_536  # as of node.ingest


@dataclass(frozen=True, slots=True)
class Target:
    """Where an attempt of a write goes: what is in force at the head that its commit expects."""

    relations: Relations
    view: DatasetView

    @property
    def name(self) -> str:
        """Of the table."""
        return self.relations.record.name

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which the table tells rows apart; empty: whole rows are."""
        return find_keys(self.view)

    @property
    def columns(self) -> list[str]:
        """Those that writes have."""
        return [each.name for each in list_fields(self.view)]


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """How the rows of an attempt are merged, and what they must not become.

    Attributes:
        merge: How.
        has_operations: Their first column is the operation.
        adds_only: No row may be known.
        rows_before: So many rows stand before those of the frame.
    """

    merge: MergeStrategy
    has_operations: bool = False
    adds_only: bool = False
    rows_before: int = 0


class Write(ABC):
    """One write, before it is tried."""

    operation: ClassVar[str]

    @property
    def detail(self) -> dict[str, Any]:
        """What its note states beside the counts."""
        return {}

    @abstractmethod
    def plan(self, target: Target, path: Path) -> PlannedRows:
        """Write the rows of one attempt as Arrow's stream."""


@dataclass(frozen=True, slots=True)
class Insert(Write):
    """Rows that the table does not have."""

    frame: pa.Table
    operation: ClassVar[str] = "insert"

    def plan(self, target: Target, path: Path) -> PlannedRows:
        """See ``Write``."""
        rows = fit_frame(target.name, self.frame, target.view)
        if not target.key:
            write_stream(rows, path)
            return PlannedRows(MergeStrategyAppend())
        require_keys(target.name, rows, target.key)
        write_stream(rows, path)
        return PlannedRows(MergeStrategyUpsertStream(primary_key=target.key), adds_only=True)


@dataclass(frozen=True, slots=True)
class Upsert(Write):
    """Rows that are new, or stand for those of the same keys."""

    frame: pa.Table
    keys: tuple[str, ...] | None
    operation: ClassVar[str] = "upsert"

    def plan(self, target: Target, path: Path) -> PlannedRows:
        """See ``Write``."""
        keys = target.key if self.keys is None else self.keys
        if not all(isinstance(each, str) for each in keys) or len({*keys}) != len(keys):
            raise UsageError(f"keys= has the name of each column of the key once, found {keys!r}")
        if not keys:
            raise UsageError(f"'{target.name}' has no key; say keys=[...], or create it with key=[...]")
        if target.key and {*keys} != {*target.key}:
            raise UsageError(f"the key of '{target.name}' is {', '.join(target.key)}, and not {', '.join(keys)}")
        if unknown := [each for each in keys if each not in target.columns]:
            raise UsageError(f"'{target.name}' has no column '{unknown[0]}'; it has {', '.join(target.columns)}")
        fields = list_fields(target.view)
        if nested := [each.name for each in fields if each.name in keys and pa.types.is_nested(each.type)]:
            raise UsageError(f"column '{nested[0]}' is a list or struct, which is no key")
        rows = fit_frame(target.name, self.frame, target.view)
        require_keys(target.name, rows, keys)
        if not target.key:
            _require_unique(target, keys)
        write_stream(rows, path)
        return PlannedRows(MergeStrategyUpsertStream(primary_key=target.key or keys))


@dataclass(frozen=True, slots=True)
class Delete(Write):
    """Rows for which a condition holds, retracted."""

    where: str
    operation: ClassVar[str] = "delete"

    @property
    def detail(self) -> dict[str, Any]:
        """See ``Write``."""
        return {"where": self.where}

    def plan(self, target: Target, path: Path) -> PlannedRows:
        """See ``Write``."""
        check_condition(self.where)
        table = target.relations.current(NOW)
        target.relations.ask_into(_select_retractions(target, self.where), [table], path)
        return _of_operations(target)


@dataclass(frozen=True, slots=True)
class Overwrite(Write):
    """Rows in the place of those for which a condition holds, or of all."""

    frame: pa.Table
    where: str | None
    operation: ClassVar[str] = "overwrite"

    @property
    def detail(self) -> dict[str, Any]:
        """See ``Write``."""
        return {} if self.where is None else {"where": self.where}

    def plan(self, target: Target, path: Path) -> PlannedRows:
        """See ``Write``."""
        rows = fit_frame(target.name, self.frame, target.view)
        if target.key:
            require_keys(target.name, rows, target.key)
        if self.where is not None:
            check_condition(self.where)
            _require_fits(target, rows, self.where)
        require_fitting(target.name, rows, target.view)
        table = target.relations.current(NOW)
        taken = target.relations.ask(_select_retractions(target, self.where), [table])
        fields = {each.name: each for each in list_fields(target.view)}
        op = target.view.vocabulary.op
        schema = pa.schema([pa.field(op, pa.int32()), *(fields[name].with_nullable(True) for name in target.columns)])
        given = {name: rows.column(name) for name in rows.column_names}
        given[op] = pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)
        absent = {each.name: pa.nulls(rows.num_rows, each.type) for each in schema if each.name not in given}
        # Of one key the last row counts, so what is retracted first and brought again is corrected, or stays.
        both = [taken.select(schema.names).cast(schema), pa.table(given | absent).select(schema.names).cast(schema)]
        write_stream(pa.concat_tables(both), path)
        return replace(_of_operations(target), rows_before=taken.num_rows)


@dataclass(frozen=True, slots=True)
class RestoreVersion(Write):
    """The current rows of an earlier version, made current again."""

    version: int
    operation: ClassVar[str] = "restore"

    @property
    def detail(self) -> dict[str, Any]:
        """See ``Write``."""
        return {"version": self.version}

    def plan(self, target: Target, path: Path) -> PlannedRows:
        """See ``Write``."""
        relations = target.relations
        relations.require_version(self.version)
        tables = [relations.current(NOW), relations.current(THEN, version=self.version)]
        fields = list_fields(target.view)
        columns = ", ".join(map(quote, target.columns))
        op = quote(target.view.vocabulary.op)
        one, count = free_name("odf_one", target.columns), free_name("odf_n", target.columns)
        # As a multiset: what is there now and was not is retracted, what was there and is not is brought, as it was.
        brought = ", ".join(
            f"coalesce(first_value({quote(each.name)}) FILTER (WHERE {one} > 0), {form}) AS {quote(each.name)}"
            if has_floats(each.type)
            else quote(each.name)
            for each, form in zip(fields, quote_forms(fields), strict=True)
        )
        counted = (
            f"SELECT {brought}, sum({one}) AS {count} FROM ("  # noqa: S608 - quoted, and names of this node's own
            f"SELECT {columns}, 1 AS {one} FROM {THEN}__state UNION ALL "
            f"SELECT {columns}, -1 AS {one} FROM {NOW}__state) GROUP BY {', '.join(quote_forms(fields))}"
        )
        repeated = f"SELECT *, unnest(array_repeat(0, abs({count}))) AS {one} FROM ({counted}) WHERE {count} <> 0"  # noqa: S608
        sql = (
            f"SELECT CAST(CASE WHEN {count} < 0 THEN 1 ELSE 0 END AS INT) AS {op}, {columns} "  # noqa: S608
            f"FROM ({repeated}) ORDER BY {op} DESC"
        )
        relations.ask_into(sql, tables, path)
        return _of_operations(target)


def frame_of(write: Write) -> pa.Table | None:
    """Give the rows that a write brings; None where it brings none."""
    return write.frame if isinstance(write, Insert | Upsert | Overwrite) else None


def _of_operations(target: Target) -> PlannedRows:
    if target.key:
        return PlannedRows(MergeStrategyUpsertStream(primary_key=target.key), has_operations=True)
    # A key would only order the rows: they stay as they come, what is retracted before what is appended.
    return PlannedRows(MergeStrategyChangelogStream(primary_key=()), has_operations=True)


def _select_retractions(target: Target, where: str | None) -> str:
    condition = "true" if where is None else f"(\n{where}\n)"
    op = f"CAST(1 AS INT) AS {quote(target.view.vocabulary.op)}, "
    return rows_where(f"{NOW}__state", list_fields(target.view), condition, shown=op)


def _require_fits(target: Target, rows: pa.Table, where: str) -> None:
    """Reject rows for which the condition of an overwrite does not hold: they would add to other rows."""
    with frame_table(rows) as table:
        sql = rows_where(FRAME, [*rows_schema_of(table.schema)], f"(\n{where}\n) IS NOT TRUE")
        found = target.relations.ask(sql, [table], max_rows=SHOWN_ROWS)
    if found.num_rows:
        raise RowsRejectedError(target.name, f"rows that are not of {where.strip()}", found.to_pylist())


def _require_unique(target: Target, keys: Sequence[str]) -> None:
    columns = ", ".join(map(quote, keys))
    compared = select_forms([each for each in list_fields(target.view) if each.name in keys])
    sql = (
        f"SELECT {columns} FROM (SELECT {compared} FROM {NOW}__state) "  # noqa: S608 - quoted
        f"GROUP BY {columns} HAVING count(*) > 1"
    )
    found = target.relations.ask(sql, [target.relations.current(NOW)], max_rows=SHOWN_ROWS)
    if found.num_rows:
        reason = f"several current rows have one key ({', '.join(keys)})"
        raise RowsRejectedError(target.name, reason, found.to_pylist())


def write_stream(rows: pa.Table, path: Path) -> None:
    """Write rows as Arrow's stream to a file."""
    with path.open("wb") as file:
        write_into(rows, file)


def write_into(rows: pa.Table, sink: Any) -> None:
    """Write rows as Arrow's stream, the same bytes however they are cut."""
    table = rows.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_BATCH_ROWS)
