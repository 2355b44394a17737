"""Rows of another dataset that a plug-in looks into: its files, and which of their rows are in force.

Source: clauses CONV-8 in ``spec/conversion.md`` and VALID-9 in ``spec/validation.md``; QUERY-3 in ``spec/query.md``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_protocol.events import DataSchema
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

NEWEST: Final = "\0newest"
"""The column with the offset of the newest of some equal rows; no column of a dataset is called so."""

_GIVES: Final = (0, 3)  # Source: ODF OperationType: append, correct-to; the others take


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedRows:
    """A dataset as it was known at one time.

    Attributes:
        vocabulary: Names of its system columns.
        schema: Of its rows.
        slices: Files with them that this node wrote, oldest first; none where a declaration is only checked.
    """

    vocabulary: Vocabulary
    schema: DataSchema
    slices: tuple[Path, ...] = ()


def read_in_force(rows: ReferencedRows, schema: "pa.Schema") -> "pa.Table":
    """Read what is in force: values that rows gave and that no row took since, each once.

    Args:
        rows: Where they are.
        schema: The columns that matter, plain ones: rows that differ in others are counted together.

    Returns:
        Those columns, and ``NEWEST``; the newest row first.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    known, weight = rows.vocabulary, "\0weight"
    tables = []
    for path in rows.slices:
        with pq.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            found = file.read(columns=[known.op, known.offset, *(name for name in schema.names if name in there)])
        gives = pc.is_in(found.column(known.op).cast(pa.int64()), pa.array(_GIVES, pa.int64()))
        values = [
            found.column(field.name).cast(field.type) if field.name in there else pa.nulls(len(found), field.type)
            for field in schema
        ]
        offsets = pc.if_else(gives, found.column(known.offset).cast(pa.int64()), -1)
        tables.append(pa.table([*values, offsets, pc.if_else(gives, 1, -1)], names=[*schema.names, NEWEST, weight]))
    if not tables:
        return schema.append(pa.field(NEWEST, pa.int64())).empty_table()
    counted = pa.concat_tables(tables).group_by(schema.names).aggregate([(NEWEST, "max"), (weight, "sum")])
    stands = counted.filter(pc.greater(counted.column(f"{weight}_sum"), 0)).sort_by([(f"{NEWEST}_max", "descending")])
    return stands.select([*schema.names, f"{NEWEST}_max"]).rename_columns([*schema.names, NEWEST])


def plain_schema_of(rows: ReferencedRows) -> "pa.Schema":
    """Return the columns of a dataset that can be looked up: plain ones, and not what tells its rows apart."""
    import pyarrow as pa

    from odf_protocol.schema_arrow import rows_schema_of

    own = {rows.vocabulary.op, rows.vocabulary.offset, rows.vocabulary.system_time}
    found = rows_schema_of(rows.schema)
    return pa.schema([each for each in found if each.name not in own and not pa.types.is_nested(each.type)])
