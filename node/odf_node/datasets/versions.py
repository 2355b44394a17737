"""Datasets as runs read and write them, for those who observe (OBSERVE-2)."""

from typing import TYPE_CHECKING

from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.observing import DatasetVersion

if TYPE_CHECKING:
    import pyarrow as pa


def version_of(record: DatasetRecord, columns: tuple[tuple[str, str], ...] = ()) -> DatasetVersion:
    """Give a dataset as it is with its head."""
    return DatasetVersion(dataset_id=str(record.id), name=record.name, block=str(record.head.hash), columns=columns)


def columns_of_schema(schema: "pa.Schema") -> tuple[tuple[str, str], ...]:
    """List the columns of a slice with their types, as Arrow writes these."""
    return tuple((field.name, str(field.type)) for field in schema)
