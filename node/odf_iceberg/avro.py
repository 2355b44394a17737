"""Manifests and manifest lists of Iceberg, as Avro files with the same bytes each time they are made.

Source: clause ICEBERG-6 in ``spec/plug-ins/iceberg.md``; Iceberg table specification, "Manifests" and "Manifest Lists"
(format version 2).
"""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import fastavro

from odf_iceberg.versions import Version


class Content(IntEnum):
    """What the files of a manifest hold. Source: Iceberg table specification, fields 134 and 517."""

    DATA = 0
    DELETES = 1


class Status(IntEnum):
    """Since when a file is part of a table. Source: Iceberg table specification, field 0 of a manifest entry."""

    EXISTING = 0
    ADDED = 1


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a table.

    Attributes:
        path: Its address.
        rows: How many it has.
        size_bytes: Of it.
        since: The version whose snapshot added it.
        status: Whether the snapshot of the manifest added it.
        referenced: Of a file of deletes, the one data file whose rows it deletes.
    """

    path: str
    rows: int
    size_bytes: int
    since: Version
    status: Status = Status.EXISTING
    referenced: str | None = None


@dataclass(frozen=True, slots=True)
class TableManifest:
    """A manifest that was made.

    Attributes:
        path: Its address.
        raw: Its bytes.
        content: What its files hold.
        since: The version whose snapshot added the manifest.
        files: What it lists.
    """

    path: str
    raw: bytes
    content: Content
    since: Version
    files: tuple[FileEntry, ...]


def _field(number: int, name: str, kind: Any) -> dict[str, Any]:
    optional = {"default": None} if isinstance(kind, list) else {}
    return {"name": name, "type": kind, **optional, "field-id": number}


_DATA_FILE: Final = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": []}),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        _field(143, "referenced_data_file", ["null", "string"]),
    ],
}
_ENTRY: Final = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        _field(0, "status", "int"),
        _field(1, "snapshot_id", ["null", "long"]),
        _field(3, "sequence_number", ["null", "long"]),
        _field(4, "file_sequence_number", ["null", "long"]),
        _field(2, "data_file", _DATA_FILE),
    ],
}
_MANIFEST_FILE: Final = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long"),
        _field(504, "added_files_count", "int"),
        _field(505, "existing_files_count", "int"),
        _field(506, "deleted_files_count", "int"),
        _field(512, "added_rows_count", "long"),
        _field(513, "existing_rows_count", "long"),
        _field(514, "deleted_rows_count", "long"),
    ],
}
_SYNC_BYTES: Final = 16
"""Source: Apache Avro specification, "Object Container Files"."""


def encode_manifest(files: Sequence[FileEntry], content: Content, schema: dict[str, Any]) -> bytes:
    """Make a manifest of files that are in no partition; ``schema`` is that of the table, as its JSON has it."""
    records = [
        {
            "status": each.status,
            "snapshot_id": each.since.snapshot_id,
            "sequence_number": each.since.sequence_number,
            "file_sequence_number": each.since.sequence_number,
            "data_file": {
                "content": content,
                "file_path": each.path,
                "file_format": "PARQUET",
                "partition": {},
                "record_count": each.rows,
                "file_size_in_bytes": each.size_bytes,
                "referenced_data_file": each.referenced,
            },
        }
        for each in files
    ]
    said = {
        "schema": json.dumps(schema, separators=(",", ":")),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "data" if content is Content.DATA else "deletes",
    }
    return _encode(_ENTRY, records, said)


def encode_manifest_list(manifests: Sequence[TableManifest], version: Version, parent: Version | None) -> bytes:
    """Make the list of the manifests of the snapshot of a version, after that of ``parent``."""
    records = []
    for each in manifests:
        added = [file for file in each.files if file.status is Status.ADDED]
        existing = [file for file in each.files if file.status is Status.EXISTING]
        records.append(
            {
                "manifest_path": each.path,
                "manifest_length": len(each.raw),
                "partition_spec_id": 0,
                "content": each.content,
                "sequence_number": each.since.sequence_number,
                "min_sequence_number": min(file.since.sequence_number for file in each.files),
                "added_snapshot_id": each.since.snapshot_id,
                "added_files_count": len(added),
                "existing_files_count": len(existing),
                "deleted_files_count": 0,
                "added_rows_count": sum(file.rows for file in added),
                "existing_rows_count": sum(file.rows for file in existing),
                "deleted_rows_count": 0,
            }
        )
    said = {
        "snapshot-id": str(version.snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent.snapshot_id),
        "sequence-number": str(version.sequence_number),
        "format-version": "2",
    }
    return _encode(_MANIFEST_FILE, records, said)


def _encode(schema: dict[str, Any], records: list[dict[str, Any]], said: dict[str, str]) -> bytes:
    target = io.BytesIO()
    # Avro's writers draw the marker between blocks by chance; the same file has to have the same bytes.
    marker = hashlib.sha3_256(json.dumps(said, sort_keys=True).encode()).digest()[:_SYNC_BYTES]
    fastavro.writer(target, schema, records, metadata=said, codec="deflate", sync_marker=marker)
    return target.getvalue()
