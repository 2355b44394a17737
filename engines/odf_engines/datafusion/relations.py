"""Inputs as relations: the rows of an interval of offsets, in the order in which another implementation reads them.

Several files are read as one folder, and DataFusion takes those of a folder by their names. The other implementation
calls them by their hashes, so rows of a step over several slices come in the order of these (FUSION-6).

Source: clauses ENGINE-11 and FUSION-6 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datafusion import col, functions, literal, udf

from odf_engines.contract import QueryTable, TransformInput
from odf_engines.datafusion.context import query_errors, quoted
from odf_engines.datafusion.settings import BATCH_ROWS
from odf_engines.errors import EngineFailureError, InvalidQueryError
from odf_protocol.comparison_form import form_function, has_floats, in_comparison_form
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataSchema
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext


def input_rows(context: "SessionContext", source: TransformInput, folder: Path) -> "DataFrame":
    """Return an input's new rows of a step.

    Raises:
        InvalidQueryError: It has a type that Arrow does not know.
        EngineFailureError: A file cannot be read.
    """
    if source.offset_interval is None or not source.slices:
        # As the other implementation says it: the plan, and what may be null in it, follow from that.
        return empty_rows(context, source.schema, folder, alias=source.alias).filter(literal(False))
    paths: Sequence[Path] = source.slices
    if source.hashes:
        paths = [path for _, path in sorted(zip(map(str, source.hashes), source.slices, strict=True))]
    folder.mkdir(parents=True)
    paths = [_prepared(path, folder.with_name(f"{folder.name}-{place}")) for place, path in enumerate(paths)]
    rows = read_files(context, paths, folder)
    offset = col(quoted(source.vocabulary.offset))
    with query_errors():
        return rows.filter(
            (offset >= literal(source.offset_interval.start)) & (offset <= literal(source.offset_interval.end))
        )


def _prepared(path: Path, target: Path) -> Path:
    """Return a slice whose batches end where rows alone say, and whose footer is true of floating-point numbers.

    Its row groups have whole batches, but for the last one: sums of floating-point numbers and estimates are made batch
    by batch, and a batch ends with a row group. What a footer says of columns without NaN stays, as the order of joins
    follows from it, here and elsewhere.
    """
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        lies = _list_with_nan(file)
        if not any(rows % BATCH_ROWS for rows in sizes[:-1]) and not lies:
            return path
        stated = [each for each in _list_leaves(file) if each not in lies]
        with pq.ParquetWriter(target, file.schema_arrow, write_statistics=stated or False) as writer:
            held, count = list[pa.RecordBatch](), 0
            for batch in file.iter_batches(BATCH_ROWS):
                held, count = [*held, batch], count + batch.num_rows
                if count >= BATCH_ROWS:
                    rows = pa.Table.from_batches(held)
                    writer.write_table(rows.slice(0, BATCH_ROWS))
                    held, count = rows.slice(BATCH_ROWS).to_batches(), count - BATCH_ROWS
            if count:
                writer.write_table(pa.Table.from_batches(held))
    return target


def _list_leaves(file: pq.ParquetFile) -> list[str]:
    return [file.schema.column(place).path for place in range(len(file.schema))]


def _list_with_nan(file: pq.ParquetFile) -> list[str]:
    """List the columns with NaN of which the footer says between which values they are.

    Writers leave NaN out of that, and DataFusion believes it: of 1.0 and NaN it makes 1.0 twice.
    """
    stated = _list_stated_floats(file)
    found: set[str] = set()
    if stated:
        for batch in file.iter_batches(columns=stated):
            found.update(name for name in stated if pc.any(pc.is_nan(batch.column(name))).as_py())
    return sorted(found)


def _list_stated_floats(file: pq.ParquetFile) -> list[str]:
    """List the columns of floating-point numbers of which a footer says between which values they are."""
    leaves, groups = _list_leaves(file), range(file.metadata.num_row_groups)
    found = []
    for field in file.schema_arrow:
        if pa.types.is_floating(field.type):
            place = leaves.index(field.name)
            columns = [file.metadata.row_group(group).column(place) for group in groups]
            if any(each.is_stats_set or each.has_column_index for each in columns):
                found.append(field.name)
    return found


def empty_rows(context: "SessionContext", schema: DataSchema, folder: Path, *, alias: str) -> "DataFrame":
    """Return no rows as if from a file, so that columns have the types that files give them.

    Raises:
        InvalidQueryError: A type that Arrow does not know.
    """
    try:
        columns = rows_schema_of(schema)
    except UnsupportedError as error:
        raise InvalidQueryError(f"input {alias}: {error}") from error
    folder.mkdir(parents=True)
    path = folder.with_name(f"{folder.name}.parquet")
    pq.write_table(columns.empty_table(), path)
    return read_files(context, [path], folder)


def read_files(context: "SessionContext", paths: Sequence[Path], folder: Path) -> "DataFrame":
    """Return the rows of files, one file after the other; what they say of their rows is believed.

    Raises:
        EngineFailureError: One cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths):
        (folder / f"{number:09}.parquet").symlink_to(path)
    try:
        with query_errors():
            return context.read_parquet(f"{folder}/")
    except InvalidQueryError as error:
        raise EngineFailureError(f"an input cannot be read: {error.message}") from error


def read_whole_floats(context: "SessionContext", paths: Sequence[Path], folder: Path) -> "DataFrame":
    """Return the rows of files; of floating-point numbers it is not believed what files say (FUSION-15).

    Conditions on other columns still leave row groups out.
    """
    rows, columns = read_files(context, paths, folder), []
    for field in rows.schema():
        column = col(quoted(field.name))
        if pa.types.is_float32(field.type) or pa.types.is_float64(field.type):  # of halves our writer says nothing
            # Its value, whatever that is, in words that no reader of footers looks into.
            column = functions.nanvl(column, column).alias(field.name)
        columns.append(column)
    with query_errors():
        return rows.select(*columns)


def count_rows(rows: "DataFrame", vocabulary: Vocabulary) -> dict[str, int | None]:
    """Say how many rows of an input this engine's reader finds, and the first and last of their offsets."""
    offset = col(quoted(vocabulary.offset))
    asked = {"rows": functions.count(literal(1)), "first": functions.min(offset), "last": functions.max(offset)}
    with query_errors():
        found = rows.aggregate([], [each.alias(name) for name, each in asked.items()]).to_pydict()
    return {name: values[0] for name, values in found.items()}


def register(context: "SessionContext", name: str, rows: "DataFrame") -> None:
    """Make rows known to queries under a name, which may have dots."""
    context.register_view(quoted(name), rows)


def register_forms(context: "SessionContext", table: QueryTable, rows: "DataFrame") -> None:
    """Make the comparison forms of a table's columns known to queries (``form_sql``)."""
    types = {each.name: each.type for each in rows_schema_of(table.schema)}
    for column in rows.schema():
        declared = types.get(column.name)
        if declared is not None and has_floats(declared):
            kind = column.type
            context.register_udf(udf(in_comparison_form, [kind], kind, "immutable", form_function(declared)))
