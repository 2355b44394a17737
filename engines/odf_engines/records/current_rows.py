"""Which rows of a dataset that a plug-in looks into are in force.

Source: clauses CONV-8 in ``spec/conversion.md`` and VALID-9 in ``spec/validation.md``; QUERY-3 in ``spec/query.md``.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.records.referenced_rows import ReferencedRows
from odf_protocol.comparison_form import in_comparison_form
from odf_protocol.schema_arrow import rows_schema_of

_GIVES: Final = (0, 3)  # Source: ODF OperationType: append, correct-to; the others take


def read_current(rows: ReferencedRows, schema: pa.Schema) -> pa.Table:
    """Read what is in force: values that rows gave and that no row took since, each once, the newest first.

    Args:
        rows: Where they are.
        schema: The columns that matter, plain ones: rows that differ in others are counted together.

    Returns:
        Those columns, in the form in which they are compared.
    """
    known = rows.vocabulary
    # By number: a dataset of somebody else has columns of any name.
    columns = [str(number) for number in range(len(schema))]
    tables = []
    for path in rows.slices:
        with pq.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            found = file.read(columns=[known.op, known.offset, *(name for name in schema.names if name in there)])
        gives = pc.is_in(found.column(known.op).cast(pa.int64()), pa.array(_GIVES, pa.int64()))
        values = [
            in_comparison_form(found.column(field.name).cast(field.type))
            if field.name in there
            else pa.nulls(len(found), field.type)
            for field in schema
        ]
        offsets = pc.if_else(gives, found.column(known.offset).cast(pa.int64()), -1)
        tables.append(pa.table([*values, offsets, pc.if_else(gives, 1, -1)], names=[*columns, "newest", "weight"]))
    if not tables:
        return schema.empty_table()
    counted = pa.concat_tables(tables).group_by(columns).aggregate([("newest", "max"), ("weight", "sum")])
    stands = counted.filter(pc.greater(counted.column("weight_sum"), 0)).sort_by([("newest_max", "descending")])
    return stands.select(columns).rename_columns(schema.names)


def plain_schema_of(rows: ReferencedRows) -> pa.Schema:
    """Return the columns of a dataset that can be looked up: plain ones, and not what tells its rows apart."""
    own = {rows.vocabulary.op, rows.vocabulary.offset, rows.vocabulary.system_time}
    found = rows_schema_of(rows.schema)
    return pa.schema([each for each in found if each.name not in own and not pa.types.is_nested(each.type)])
