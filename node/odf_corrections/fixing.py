"""Fixing rows of quarantine: by a file that somebody edited, or by expressions in SQL over their texts.

Source: clause QUAR-4 in ``spec/plug-ins/corrections.md``.
"""

import csv
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.host.tables import table_in
from odf_engines.ingest.json_records import parse_object
from odf_engines.ingest.source_schema import find_declared
from odf_engines.records.json_members import BrokenJsonError
from odf_node.cli.quarantine_rows import REPORTED_COLUMNS, ROW_COLUMN
from odf_node.datasets.quarantined_rows import KeptRow
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UsageError
from odf_node.records.quarantine import RowId
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import MalformedError
from odf_protocol.manifest.errors import find_nearest, list_words
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

__all__ = [
    "InvalidEditError",
    "compute_fixed",
    "find_columns",
    "iter_edited",
    "iter_texts",
    "list_edited",
]  # fmt: skip

_TABLE: Final = "quarantine"


class InvalidEditError(MalformedError):
    """An edited file does not say which row a line is, or cannot be read."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__("edited rows", where=f"{path}:{line}")
        self.args = (f"{path}:{line}: {reason}; nothing was changed",)


@dataclass(frozen=True, slots=True)
class EditedRow:
    """One line of an edited file."""

    row: RowId
    columns: Mapping[str, str | None]


def iter_edited(path: Path) -> Iterator[EditedRow]:
    """Read a file that ``export`` wrote and somebody changed: NDJSON where its name ends so, else CSV.

    Raises:
        InvalidEditError: A line says no row, or is none.
    """
    seen: set[RowId] = set()
    for line, values in iter_texts(path):
        text = values.get(ROW_COLUMN) or ""
        row = RowId.find(text)
        if row is None:
            raise InvalidEditError(path, line, f"expected the id of a row such as 3.17 in {ROW_COLUMN}, found {text!r}")
        if row in seen:
            raise InvalidEditError(path, line, f"the row {row} is there twice")
        seen.add(row)
        reported = (ROW_COLUMN, *REPORTED_COLUMNS)
        yield EditedRow(row, {name: value for name, value in values.items() if name not in reported})


def iter_texts(path: Path) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    """Read a file that somebody edited, NDJSON where its name ends so, else CSV: lines and their columns as texts.

    Raises:
        InvalidEditError: A line is none.
    """
    is_json = path.suffix.lower() in {".ndjson", ".jsonl", ".json"}
    yield from _iter_objects(path) if is_json else _iter_records(path)


def find_columns(names: Iterable[str], rows: Iterable[KeptRow], view: DatasetView) -> dict[str, str]:
    """Find the column that each name means: as it was sent, or in the quotes that SQL has for names.

    Args:
        names: As somebody wrote them.
        rows: That are fixed.
        view: Of their dataset, whose sources may have columns that none of the rows has.

    Raises:
        UsageError: There is no such column, not where a source takes whatever columns are sent; or two names mean one.
    """
    declared = _list_declared(view)
    known = {name for row in rows for name in row.given} | (declared or set())
    found = {name: name if name in known else _without_quotes(name) for name in names}
    named_by: dict[str, str] = {}
    for written, name in sorted(found.items()):
        if (other := named_by.setdefault(name, written)) != written:
            raise UsageError(f"the column {name!r} is named twice, as {other} and as {written}; nothing was changed")
    for name in found.values():
        if declared is not None and name not in known:
            nearest = find_nearest(name, known)
            hint = f"did you mean {nearest!r}?" if nearest else f"there are {list_words(sorted(known))}."
            raise UsageError(f"there is no column {name!r}; {hint} Nothing was changed")
    return found


def _list_declared(view: DatasetView) -> set[str] | None:
    """List the columns that sources declare; None where there is no source, or one takes whatever is sent."""
    reads = [each.read for each in view.push_sources.values()]
    if view.polling_source is not None:
        reads.append(view.polling_source.read)
    schemas = [find_declared(read) for read in reads]
    names = [schema.names for schema in schemas if schema is not None]
    return {name for each in names for name in each} if names and len(names) == len(schemas) else None


def _without_quotes(name: str) -> str:
    quote = name[:1]
    if len(name) > 2 and quote in {'"', "`"} and name.endswith(quote):
        return name[1:-1].replace(quote * 2, quote)
    return name


def list_edited(
    edited: Mapping[RowId, Mapping[str, str | None]], rows: Iterable[KeptRow]
) -> dict[RowId, Mapping[str, str | None]]:
    """Keep the rows in which something was edited; those that are not among ``rows`` as well, to be rejected.

    Args:
        edited: Columns and texts by row, as a file has them; a column that a row never had is null there.
        rows: As they are.
    """
    before = {row.id: row.columns for row in rows}

    def is_edited(row: RowId, columns: Mapping[str, str | None]) -> bool:
        if row not in before:
            return True
        # A file that was exported does not tell the empty text from null.
        return any((columns.get(name) or None) != (before[row].get(name) or None) for name in {*columns, *before[row]})

    return {row: columns for row, columns in edited.items() if is_edited(row, columns)}


def compute_fixed(
    engines: EngineHost, rows: Sequence[KeptRow], expressions: Mapping[str, str], scratch: Path
) -> dict[RowId, dict[str, str | None]]:
    """Compute columns anew, each by an expression over the texts of the row.

    Raises:
        InvalidQueryError: An expression is none, or fails on a value.
        UsageError: There are no rows.
    """
    if not rows:
        raise UsageError("there is no row to be fixed")
    names = list(dict.fromkeys(name for row in rows for name in row.columns))
    texts = {name: pa.array([row.columns.get(name) for row in rows], pa.string()) for name in names}
    table = pa.table({ROW_COLUMN: pa.array([str(row.id) for row in rows]), **texts})
    scratch.mkdir(parents=True, exist_ok=True)
    path = scratch / f"rows-to-mend-{secrets.token_hex(8)}.parquet"  # two commands may do this at once
    try:
        pq.write_table(table, path, compression="snappy")
        schema = data_schema_of(table.schema)
        source = QueryTable(name=_TABLE, vocabulary=Vocabulary(), schema=schema, slices=(path,), is_changelog=False)
        columns = ", ".join(
            f"CAST((\n{sql}\n) AS STRING) AS c{index}" for index, sql in enumerate(expressions.values())
        )
        # The operator's own, and it passes the gate.
        query = f"SELECT {ROW_COLUMN} AS mended, {columns} FROM {_TABLE}"  # noqa: S608
        response = engines.query_session().query(QueryRequest(tables=(source,), sql=query, limits=engines.limits))
        assert response.rows_path is not None  # of every question
        with response.rows_path.open("rb") as file:
            answered = {each.pop("mended"): each for each in table_in(file).to_pylist()}
    finally:
        path.unlink(missing_ok=True)
    return {
        row.id: dict(row.columns) | {name: answered[str(row.id)][f"c{index}"] for index, name in enumerate(expressions)}
        for row in rows
    }


def _iter_objects(path: Path) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if raw := line.strip():
                try:
                    yield number, parse_object(raw)
                except BrokenJsonError as error:
                    raise InvalidEditError(path, number, str(error)) from error


def _iter_records(path: Path) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            names = next(reader, [])
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise InvalidEditError(path, 1, f"the column '{twice}' is there twice")
            for fields in reader:
                if len(fields) != len(names):
                    reason = f"expected {len(names)} fields as in the first line, found {len(fields)}"
                    raise InvalidEditError(path, reader.line_num, reason)
                yield reader.line_num, {name: field or None for name, field in zip(names, fields, strict=True)}
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidEditError(path, reader.line_num, str(error)) from error
