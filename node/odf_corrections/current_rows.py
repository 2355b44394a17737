"""Rows in force of a dataset, by a condition or by their offsets, with the values that they have.

What a condition may be is the operator's affair: it only says offsets, and values that expressions give. What the rows
have is asked by offset.

Source: clause ING-27 in ``spec/plug-ins/corrections.md``; QUERY-3 in ``spec/query.md``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_corrections.fixing import InvalidEditError, iter_texts
from odf_engines.contract import IngestRequest
from odf_engines.reading.files import read_table
from odf_engines.records.carriers import from_carrier, to_carrier
from odf_node.datasets.queries import QueryRunner
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_protocol.comparison_form import form_sql
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeInt64,
    DataTypeOption,
    MergeStrategyAppend,
    ReadStepNdJson,
)
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.timestamp import Timestamp

MAX_ROWS: Final = 1_000
"""Rows of one correction.  # guess: more than anybody looks through; a condition that means others is found out"""

_SHOWN: Final = 3  # guess: of lines that cannot be read, as many as a message holds


def read_values(engines: EngineHost, view: DatasetView, path: Path, scratch: Path, now: Timestamp) -> "pa.Table":
    """Read corrected rows: each says by its offset which row it stands for.

    Args:
        engines: One of them reads texts as those of an ingest (ING-4).
        view: Of the dataset; it has rows.
        path: NDJSON where its name ends so, else CSV with a header.
        scratch: Folder for what the engine reads.
        now: Any time.

    Returns:
        The offset, and the columns of the file that are the dataset's own, under their names.

    Raises:
        InvalidEditError: A line cannot be read, names other columns than the first, or a row that another one names.
        UsageError: There are no lines, too many, or a column that the dataset lacks.
    """
    known, names = view.vocabulary, list[str]()
    reported = {known.op, known.system_time}
    lines: list[int] = []
    target = scratch / "corrected.ndjson"
    with target.open("w", encoding="utf-8") as file:
        for line, values in iter_texts(path):
            names = names or list(values)
            if set(values) != set(names):
                raise InvalidEditError(path, line, f"expected the columns {', '.join(names)} as in the first row")
            if len(lines) == MAX_ROWS:
                raise UsageError(f"{path} has more than {MAX_ROWS:,} rows; correct them in parts, or ingest them")
            lines.append(line)
            file.write(json.dumps({name: text for name, text in values.items() if name not in reported}) + "\n")
    if known.offset not in names:
        raise UsageError(f"{path}: expected rows with a column {known.offset}, which says what row each one corrects")
    fields = _find_fields(view, [name for name in names if name not in reported], path)
    request = IngestRequest(
        dataset_id=str(view.dataset_id),
        read=ReadStepNdJson(schema=DataSchema(fields=fields)),
        preprocess=None,
        merge=MergeStrategyAppend(),
        vocabulary=known,
        source_path=target,
        source_name=str(path),
        known_schema=None,
        state_path=None,
        system_time=now,
        fallback_event_time=now,
        next_offset=0,
        limits=engines.limits,
    )
    read = engines.convert(request)
    if read.quarantine is not None:
        bad = read_table(read.quarantine, columns=("record", "errors"), most=_SHOWN).to_pylist()
        reasons = "; ".join(f"{each['column'] or 'row'}: {each['message']}" for row in bad for each in row["errors"])
        raise InvalidEditError(path, lines[(bad[0]["record"] or 1) - 1], reasons)
    rows = read_table(read.rows)
    seen: set[int] = set()
    for line, offset in zip(lines, rows.column(known.offset).to_pylist(), strict=True):
        if offset in seen:
            raise InvalidEditError(path, line, f"the row {offset} is there twice")
        seen.add(offset)
    return rows


def _find_fields(view: DatasetView, names: Sequence[str], path: Path) -> tuple[DataField, ...]:
    assert view.schema is not None
    types = {field.name: field for field in view.schema.fields}
    if unknown := [name for name in names if name not in types]:
        raise UsageError(f"{path}: the dataset has no column '{unknown[0]}'; it has {', '.join(types)}")
    return tuple(
        DataField(name=name, type=DataTypeInt64()) if name == view.vocabulary.offset else _optional(types[name])
        for name in names
    )


def _optional(field: DataField) -> DataField:
    return field if isinstance(field.type, DataTypeOption) else replace(field, type=DataTypeOption(inner=field.type))


VALUE: Final = "corrected_{}"
"""The column of an answer with what an expression gave, by its place among them."""


@dataclass(frozen=True, slots=True)
class CurrentRows:
    """Asks the node's engines, which read rows that were checked."""

    queries: QueryRunner
    record: DatasetRecord
    view: DatasetView

    def get(self, offsets: Sequence[int]) -> "pa.Table":
        """Read rows that all have to be in force.

        Raises:
            UsageError: One is not.
        """
        rows = self._read(offsets)
        if taken := sorted(set(offsets) - set(self._find_current(rows))):
            name = self.record.name
            raise UsageError(
                f"row {taken[0]} of '{name}' is not a current row: it does not exist, or was retracted since"
            )
        return rows

    def find(self, condition: str, expressions: Sequence[str]) -> "tuple[pa.Table, pa.Table]":
        """Find current rows, and what expressions give over them, in the order of their offsets.

        Args:
            condition: In DataFusion's SQL; its columns are those of the dataset, the offset among them.
            expressions: Likewise.

        Returns:
            The rows, with the types of slices; and ``VALUE`` columns, of the same number of rows.

        Raises:
            UsageError: There is none, or there are more than ``MAX_ROWS``.
            InvalidQueryError: The condition or an expression is none, or fails on a value.
        """
        assert self.view.schema is not None
        table, op, offset = self._names
        shown = [offset, *(f"(\n{sql}\n) AS {VALUE.format(number)}" for number, sql in enumerate(expressions))]
        columns = [(quote_spark_name(each.name), each.type) for each in rows_schema_of(self.view.schema)]
        forms = ", ".join(f"{form_sql(name, kind)} AS {name}" for name, kind in columns)
        # The operator's own, and it passes the gate. It is asked of values in the form in which rows are compared.
        found_by = (
            f"SELECT {offset} FROM (SELECT {forms} FROM {table}) AS {table} "  # noqa: S608
            f"WHERE {op} IN (0, 3) AND (\n{condition}\n)"
        )
        sql = f"SELECT {', '.join(shown)} FROM {table} WHERE {offset} IN ({found_by}) ORDER BY {offset}"  # noqa: S608
        found = self._ask(sql, most=MAX_ROWS + 1)
        offsets = found.column(0).to_pylist()
        if len(offsets) > MAX_ROWS:
            raise UsageError(
                f"more than {MAX_ROWS:,} rows of '{self.record.name}' are selected; correct fewer, or ingest them"
            )
        before = self._read(offsets)
        in_force = self._find_current(before)
        if not in_force:
            why = "all selected rows were retracted since" if offsets else "none exists"
            raise UsageError(f"no current row of '{self.record.name}' matches {condition.strip()} ({why})")
        stays = pa.array(in_force, pa.int64())
        before = before.filter(pc.is_in(before.column(self.view.vocabulary.offset), stays))
        found = found.filter(pc.is_in(found.column(0).cast(pa.int64()), stays))
        if found.column(0).to_pylist() != before.column(self.view.vocabulary.offset).to_pylist():
            raise UsageError(f"{condition.strip()}: expected a condition on single rows")
        return before, found

    def _read(self, offsets: Sequence[int]) -> "pa.Table":
        """Read rows that were given, by their offsets, with the types of slices."""
        assert self.view.schema is not None
        schema = rows_schema_of(self.view.schema)
        if not offsets:
            return schema.empty_table()
        table, op, offset = self._names
        sql = (
            f"SELECT * FROM {table} WHERE {op} IN (0, 3) "  # noqa: S608 - names of this node's own
            f"AND {offset} IN ({', '.join(map(str, offsets))}) ORDER BY {offset}"
        )
        found = self._ask(sql, most=MAX_ROWS)
        columns = [
            from_carrier(to_carrier(whole(found.column(number)), field.type), field.type)
            for number, field in enumerate(schema)
        ]
        return pa.table(columns, schema=schema)

    def _find_current(self, rows: "pa.Table") -> list[int]:
        """Find which of some rows that were given stand: of equal ones the last, as many as were not taken."""
        offsets = rows.column(self.view.vocabulary.offset).to_pylist()
        table, op, offset = self._names
        taken = self._ask(f"SELECT count(*) AS n FROM {table} WHERE {op} IN (1, 2)", most=1)  # noqa: S608
        if not offsets or not taken.column(0)[0].as_py():
            return [*offsets]
        assert self.view.schema is not None
        content = [each for each in rows_schema_of(self.view.schema) if each.name in content_of(self.view)]
        mine, theirs = (
            [form_sql(f"{side}.{quote_spark_name(each.name)}", each.type) for each in content] for side in ("g", "t")
        )
        alike = " AND ".join(f"({one} IS NOT DISTINCT FROM {other})" for one, other in zip(mine, theirs, strict=True))
        is_given = f"t.{op} IN (0, 3)"
        sql = f"""
            SELECT g.{offset} AS place,
                sum(CASE WHEN {is_given} THEN 1 ELSE -1 END) AS standing,
                sum(CASE WHEN {is_given} AND t.{offset} > g.{offset} THEN 1 ELSE 0 END) AS later
            FROM {table} g JOIN {table} t ON {alike}
            WHERE g.{offset} IN ({", ".join(map(str, offsets))}) GROUP BY g.{offset}
        """  # noqa: S608 - as above
        counted = self._ask(sql, most=MAX_ROWS).to_pylist()
        return sorted(each["place"] for each in counted if each["standing"] > each["later"])

    @property
    def _names(self) -> tuple[str, str, str]:
        """Of the table, the operation and the offset, as SQL has them."""
        known = self.view.vocabulary
        return quote_spark_name(self.record.name), quote_spark_name(known.op), quote_spark_name(known.offset)

    def _ask(self, sql: str, *, most: int) -> "pa.Table":
        return self.queries.run(sql, as_of=None, max_rows=most).rows


def content_of(view: DatasetView) -> list[str]:
    """List the columns that are not the node's own."""
    assert view.schema is not None
    system = {view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time}
    return [field.name for field in view.schema.fields if field.name not in system]


def whole(column: "pa.ChunkedArray") -> "pa.Array":
    """Give a column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
