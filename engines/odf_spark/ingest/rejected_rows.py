"""Rows that a merge rejected, out of Spark's data frames.

Source: spec/ingest.md ING-6.
"""

import json
from collections.abc import Iterator
from typing import Any

from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.quarantined_rows import (
    BATCH_ROWS,
    BadRows,
    QuarantinedRow,
    iter_batches,
)
from odf_engines.records.carriers import quoted
from odf_engines.records.source_records import FieldError, value_name
from odf_spark.handover import Handover
from odf_spark.ingest.merge import Rejection


def iter_rejected(
    rejection: Rejection, columns: Columns, handover: Handover, name: str, *, are_records: bool
) -> BadRows:
    """Give the rows that a merge rejected, in input order.

    Args:
        rejection: Rows and reason.
        columns: Of the rows.
        handover: Takes the rows out of Spark.
        name: For that, unique in the request.
        are_records: `ord` is the number of a record; otherwise rows are results of a query and stand as JSON.
    """
    return iter_batches(_iter_rejected(rejection, columns, handover, name, are_records=are_records))


def _iter_rejected(
    rejection: Rejection, columns: Columns, handover: Handover, name: str, *, are_records: bool
) -> Iterator[QuarantinedRow]:
    values = ", ".join(f"`{value_name(i)}` AS {quoted(field.name)}" for i, field in enumerate(columns.schema))
    text = f"to_json(struct({values}), map('ignoreNullFields', 'false')) AS text"
    for row in _iter_rows(handover, rejection.rows.selectExpr(ORD, text).orderBy(ORD), name):
        found = json.loads(row["text"])
        errors = tuple(
            FieldError(
                rejection.message,
                column,
                None if found.get(column) is None else str(found[column]),
                str(columns.schema.field(column).type),
                rejection.code,
            )
            for column in rejection.column_names
        )
        if are_records:
            yield QuarantinedRow(row[ORD], "merge", errors)
        else:
            yield QuarantinedRow(None, "merge", errors, row["text"])


def _iter_rows(handover: Handover, rows: Any, name: str) -> Iterator[dict[str, Any]]:
    for batch in handover.iter_batches(rows, name):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield from batch.slice(start, BATCH_ROWS).to_pylist()
