"""Rows that memory cannot hold, in an order: DataFusion sorts them in parts, on disk.

It is loaded with the first source that needs it. Rows are told apart by the columns that they are ordered by, so that
their order does not depend on the parts.

Source: spec/ingest.md ING-8; ENGINE-16 and ENGINE-25 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, col, functions, lit, literal, udf

from odf_engines.ingest.slice_writer import iter_groups
from odf_engines.merging.row_order import ORD, SIDE, Input, RowOrder
from odf_engines.records.ahead import cores
from odf_protocol.comparison_form import form_function, has_floats, in_comparison_form

if TYPE_CHECKING:
    from datafusion import DataFrame, Expr

_SHARE: Final = 4  # of the memory; the rest is for Arrow, Parquet and Python
_MAX_BATCH_ROWS: Final = 8192  # DataFusion's own
_BATCH_BYTES: Final = 8 * 1024 * 1024  # guess: some of them for each part are in memory while parts are merged


def make_context(scratch: Path, memory_bytes: int, batch_rows: int = _MAX_BATCH_ROWS) -> "SessionContext":
    """Return a context that writes what memory cannot hold to a folder."""
    folder = scratch / "parts"
    folder.mkdir(exist_ok=True)
    settings = {
        "datafusion.execution.target_partitions": str(cores()),
        "datafusion.execution.batch_size": str(batch_rows),
        "datafusion.execution.spill_compression": "lz4_frame",
        # Texts as Arrow's functions take them.
        "datafusion.execution.parquet.schema_force_view_types": "false",
        "datafusion.sql_parser.enable_ident_normalization": "false",
        # By what files say of their columns NaN would become the only other value that there is.
        "datafusion.execution.collect_statistics": "false",
    }
    memory = RuntimeEnvBuilder().with_fair_spill_pool(memory_bytes // _SHARE).with_disk_manager_specified(folder)
    return SessionContext(SessionConfig(settings), memory)


class DiskOrder(RowOrder):
    """See ``RowOrder``.

    Args:
        scratch: Folder for parts.
        memory_bytes: Of the session.
    """

    def __init__(self, scratch: Path, memory_bytes: int) -> None:
        self._scratch, self._memory_bytes = scratch, memory_bytes

    def order_file(
        self, records: Path, names: tuple[str, ...], stand_ins: Mapping[str, pa.Scalar]
    ) -> Iterator[pa.RecordBatch]:
        """See ``RowOrder``."""
        context = make_context(self._scratch, self._memory_bytes, rows_of_batch(records))
        types = pq.read_schema(records)
        values = [
            functions.coalesce(col(name), literal(stand_ins[name]))
            if name in stand_ins
            else by_value(name, types.field(name).type)
            for name in names
        ]
        order = [each.sort(ascending=True, nulls_first=True) for each in values]
        return iter_regrouped(context.read_parquet(str(records), file_extension=records.suffix).sort(*order))

    def order_inputs(
        self, inputs: Sequence[Input], types: Mapping[str, pa.DataType], keys: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        """See ``RowOrder``."""
        batch_rows = min(rows_of_batch(each.path) for each in inputs)
        context = make_context(self._scratch, self._memory_bytes, batch_rows)
        first, *others = (_rows_of(context, each, types, keys) for each in inputs)
        rows = reduce(lambda found, other: other.union(found), others, first)
        values = [by_value(name, types.get(name)) for name in (*keys, SIDE, ORD)]
        return iter_regrouped(rows.sort(*(value.sort(ascending=True, nulls_first=True) for value in values)))


def _rows_of(
    context: "SessionContext", given: Input, types: Mapping[str, pa.DataType], keys: tuple[str, ...]
) -> "DataFrame":
    sources = [given.names[key] for key in keys] if given.is_sorted else []
    is_sorted = given.is_sorted and not (
        any(has_floats(types[key]) for key in keys) or _may_have_nulls(given.path, sources)
    )
    # Rows of a state that was rebuilt have nulls at the end.
    order = [[col(quoted(each)).sort(ascending=True, nulls_first=True) for each in sources]] if is_sorted else None
    rows = context.read_parquet(str(given.path), file_extension=given.path.suffix, file_sort_order=order)
    values = [
        (col(quoted(given.names[name])) if name in given.names else lit(None)).cast(kind).alias(name)
        for name, kind in types.items()
    ]
    number = lit(0) if given.number is None else col(given.number) * lit(-1 if given.is_descending else 1)
    return rows.select(lit(given.side).alias(SIDE), number.cast(pa.int64()).alias(ORD), *values)


def _may_have_nulls(path: Path, names: list[str]) -> bool:
    """Say whether a column of a Parquet file may have nulls."""
    with pq.ParquetFile(path) as file:
        places = [file.schema_arrow.get_field_index(name) for name in names]
        for number in range(file.metadata.num_row_groups):
            found = [file.metadata.row_group(number).column(place).statistics for place in places]
            if any(each is None or each.null_count for each in found):
                return True
    return False


def by_value(name: str, kind: pa.DataType | None) -> "Expr":
    """Return the expression by which a column is ordered; DataFusion itself orders floats by their bits."""
    if kind is None or not has_floats(kind):
        return col(name)
    return udf(in_comparison_form, [kind], kind, "immutable", form_function(kind))(col(name))


def iter_regrouped(rows: "DataFrame") -> Iterator[pa.RecordBatch]:
    """Give the rows of a query in batches as large as groups of files are.

    Raises:
        MemoryError: There is too little.
    """
    for table in iter_groups(_iter_batches(rows)):
        yield from table.combine_chunks().to_batches()


def _iter_batches(rows: "DataFrame") -> Iterator[pa.RecordBatch]:
    try:
        for batch in rows.execute_stream():
            yield batch.to_pyarrow()
    except Exception as error:
        if "Resources exhausted" in str(error):
            raise MemoryError(str(error)) from error
        raise


def quoted(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def rows_of_batch(records: Path) -> int:
    """Say how many rows are worked on at once, as wide as the widest are."""
    with pq.ParquetFile(records) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(_MAX_BATCH_ROWS, _BATCH_BYTES // max(widest, 1)))
