"""A dataset as an Iceberg table: its metadata, manifests and files of deletes, all made from its chain.

Two tables show a dataset: one its current rows, one its changelog. Both read the slices as they are. Rows of slices
that are no current rows are listed in files of deletes, one for each slice and each number of rows that ended in it,
so a file of deletes is shared by all versions between which nothing more ended there.

Source: clauses ICEBERG-4 to ICEBERG-8 in ``spec/plug-ins/iceberg.md``; Iceberg table specification, "Table Metadata",
"Snapshots" and "Position Delete Files".
"""

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from odf_iceberg.avro import Content, FileEntry, Status, TableManifest, encode_manifest, encode_manifest_list
from odf_iceberg.columns import ColumnIds, TableColumns, columns_of, name_mapping_of
from odf_iceberg.delete_files import encode_deletes
from odf_iceberg.removals import SliceRemovals
from odf_iceberg.versions import History, Version
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

BUCKET: Final = "odf--iceberg"
"""Where files of tables seem to lie. No dataset has this name: hyphens are single (NAME-1)."""
FORMAT_VERSION: Final = 2
GROUP_FILES: Final = 500
"""Files of earlier versions that one manifest lists.  # guess: some 30 kB"""
MAX_SNAPSHOTS: Final = 10_000
"""Newest versions that a table's metadata name.  # guess: some 5 MB of JSON"""

_SHOWN_PATH: Final = re.compile(
    r"(current|changes)/(\d{1,9})\.(metadata\.json|list\.avro|own\.avro|deletes\.avro)", re.ASCII
)
_LIST_PATH: Final = re.compile(r"(?:current|changes)/(\d{1,9})\.list\.avro", re.ASCII)
_GROUP_PATH: Final = re.compile(r"(current|changes)/(\d{1,9})-(\d{1,9})-(\d{1,9})\.avro", re.ASCII)
_DELETES_PATH: Final = re.compile(r"deletes/(\d{1,9})-(\d{1,12})\.parquet", re.ASCII)


class Shown(StrEnum):
    """What a table shows of a dataset."""

    CURRENT = "current"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of both tables, by the number of the schema; names in slices; the highest id among them."""

    of: dict[Shown, tuple[TableColumns, ...]]
    name_mapping: str
    last_id: int


@dataclass(frozen=True)
class IcebergTables:
    """The tables of one dataset at one head.

    Attributes:
        dataset_id: Of the dataset.
        head: Number and hash of the newest block, for the addresses of metadata.
        history: What the chain says of rows.
        vocabulary: Names of the system columns.
        find_removals: Looks through the rows for those that are no current rows; called when first needed.
        find_sizes: Gives the size of the file of each version; called when first needed.
    """

    dataset_id: DatasetId
    head: int
    history: History
    vocabulary: Vocabulary
    find_removals: Callable[[], tuple[SliceRemovals, ...]]
    find_sizes: Callable[[], tuple[int, ...]]

    @property
    def location(self) -> str:
        """Where the files of the dataset seem to lie."""
        return f"s3://{BUCKET}/{folder_of(self.dataset_id)}"

    def metadata_location(self, shown: Shown) -> str:
        """The address of the metadata of a table."""
        return f"{self.location}/{shown}/{self.head}.metadata.json"

    @cached_property
    def removals(self) -> tuple[SliceRemovals, ...]:
        """Rows that are no current rows, for each version's slice."""
        return self.find_removals()

    @cached_property
    def _columns(self) -> "_Columns":
        ids, known = ColumnIds(), self.vocabulary
        changes = tuple(columns_of(each, ids) for each in self.history.schemas)
        left_out = (known.offset, known.op, known.system_time)
        current = tuple(columns_of(each, ids, left_out) for each in self.history.schemas)
        name_mapping = name_mapping_of(self.history.schemas[-1], ids)
        return _Columns({Shown.CURRENT: current, Shown.CHANGES: changes}, name_mapping, ids.last)

    def make_metadata(self, shown: Shown) -> dict[str, Any]:
        """Make the metadata of a table, as JSON has them."""
        columns = self._columns.of[shown]
        versions = self.history.versions[-MAX_SNAPSHOTS:]
        newest = versions[-1] if versions else None
        properties = {
            "schema.name-mapping.default": self._columns.name_mapping,
            "odf.dataset-id": str(self.dataset_id),
        }
        metadata = {
            "format-version": FORMAT_VERSION,
            "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.dataset_id}#{shown}")),
            "location": self.location,
            "last-sequence-number": newest.sequence_number if newest else 0,
            "last-updated-ms": newest.added_ms if newest else 0,
            "last-column-id": self._columns.last_id,
            "schemas": [self._schema(shown, number) for number in range(len(columns))],
            "current-schema-id": len(columns) - 1,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": properties,
            "snapshots": [self._snapshot(shown, each) for each in versions],
            "snapshot-log": [{"snapshot-id": each.snapshot_id, "timestamp-ms": each.added_ms} for each in versions],
            "metadata-log": [],
            "statistics": [],
            "partition-statistics": [],
            "refs": {},
        }
        if newest is not None:
            metadata["current-snapshot-id"] = newest.snapshot_id
            metadata["refs"] = {"main": {"snapshot-id": newest.snapshot_id, "type": "branch"}}
        return metadata

    def _schema(self, shown: Shown, number: int) -> dict[str, Any]:
        return {"type": "struct", "schema-id": number, "fields": list(self._columns.of[shown][number])}

    def _snapshot(self, shown: Shown, version: Version) -> dict[str, Any]:
        rows = _rows_of(version)
        replaces = shown is Shown.CURRENT and version.place in self._replacing
        parent = self.history.versions[version.place - 1].snapshot_id if version.place else None
        snapshot = {
            "snapshot-id": version.snapshot_id,
            "sequence-number": version.sequence_number,
            "timestamp-ms": version.added_ms,
            "manifest-list": f"{self.location}/{shown}/{version.place}.list.avro",
            "summary": {
                "operation": "overwrite" if replaces else "append",
                "added-data-files": "1",
                "added-records": str(rows),
                "odf.block": str(version.block),
                "odf.block-number": str(version.block_number),
            },
            "schema-id": version.schema,
        }
        return snapshot if parent is None else {**snapshot, "parent-snapshot-id": parent}

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return self.find_sizes()

    @cached_property
    def _by_slice(self) -> dict[Multihash, Version]:
        return {each.slice.physical_hash: each for each in self.history.versions}

    def find_version(self, slice_hash: Multihash) -> Version | None:
        """Return the version that added a slice."""
        return self._by_slice.get(slice_hash)

    def find_listed(self, path: str) -> Version | None:
        """Return the version whose manifest list a path names: who reads a version asks for it first."""
        found, versions = _LIST_PATH.fullmatch(path), self.history.versions
        return versions[int(found[1])] if found and int(found[1]) < len(versions) else None

    @cached_property
    def _replacing(self) -> frozenset[int]:
        """Versions at which rows ended."""
        return frozenset(int(version) for each in self.removals for version in set(each.since.tolist()))

    def make_file(self, path: str) -> bytes | None:
        """Make a file of these tables by its path below their location; None: they have none of this name."""
        if found := _SHOWN_PATH.fullmatch(path):
            return self._make_shown(Shown(found[1]), int(found[2]), found[3])
        if found := _GROUP_PATH.fullmatch(path):
            first, end, place = int(found[2]), int(found[3]), int(found[4])
            is_group = first % GROUP_FILES == 0 and first < end == min(first + GROUP_FILES, place)
            if not is_group or place >= len(self.history.versions):
                return None
            made = self._group_manifest(Shown(found[1]), first, end, place)
            return None if made is None else made.raw
        if found := _DELETES_PATH.fullmatch(path):
            place, count = int(found[1]), int(found[2])
            if place >= len(self.removals) or not 0 < count <= len(self.removals[place].rows):
                return None
            return self._deletes(place, count)
        return None

    def _make_shown(self, shown: Shown, number: int, kind: str) -> bytes | None:
        """Make metadata by the number of the head, or what else there is by the number of the version."""
        if kind == "metadata.json":
            is_here = number == self.head and bool(self.history.schemas)
            return encode_metadata(self.make_metadata(shown)) if is_here else None
        if number >= len(self.history.versions):
            return None
        if kind == "list.avro":
            parent = self.history.versions[number - 1] if number else None
            return encode_manifest_list(self._manifests(shown, number), self.history.versions[number], parent)
        if kind == "own.avro":
            return self._own_manifest(shown, number).raw
        deletes = self._delete_manifest(number) if shown is Shown.CURRENT else None
        return None if deletes is None else deletes.raw

    def _manifests(self, shown: Shown, place: int) -> list[TableManifest]:
        """Make the manifests of a version: of earlier files in groups, of its own file, of deletes."""
        found = []
        for first in range(0, place, GROUP_FILES):
            made = self._group_manifest(shown, first, min(first + GROUP_FILES, place), place)
            if made is not None:
                found.append(made)
        found.append(self._own_manifest(shown, place))
        if shown is Shown.CURRENT and (deletes := self._delete_manifest(place)) is not None:
            found.append(deletes)
        return found

    def _group_manifest(self, shown: Shown, first: int, end: int, place: int) -> TableManifest | None:
        """Make the manifest that version ``place`` wrote of files of versions before it; None: no row of them is left.

        Readers of current rows need not open a file of which every row has ended.
        """
        files = tuple(
            self._entry(each, Status.EXISTING)
            for each in self.history.versions[first:end]
            if shown is Shown.CHANGES or not self._has_ended(each, place)
        )
        if not files:
            return None
        return self._manifest(shown, f"{first}-{end}-{place}.avro", Content.DATA, place, files)

    def _own_manifest(self, shown: Shown, place: int) -> TableManifest:
        files = (self._entry(self.history.versions[place], Status.ADDED),)
        return self._manifest(shown, f"{place}.own.avro", Content.DATA, place, files)

    def _delete_manifest(self, place: int) -> TableManifest | None:
        files = []
        for each in self.history.versions[: place + 1]:
            removed = self.removals[each.place]
            count = removed.count_at(place)
            if count and (each.place == place or not self._has_ended(each, place)):
                since = self.history.versions[int(removed.since[count - 1])]
                files.append(
                    FileEntry(
                        path=f"{self.location}/deletes/{each.place}-{count}.parquet",
                        rows=count,
                        size_bytes=len(self._deletes(each.place, count)),
                        since=since,
                        status=Status.ADDED if since.place == place else Status.EXISTING,
                        referenced=self._data_path(each),
                    )
                )
        if not files:
            return None
        return self._manifest(Shown.CURRENT, f"{place}.deletes.avro", Content.DELETES, place, tuple(files))

    def _has_ended(self, version: Version, place: int) -> bool:
        """Say whether no row of a version's slice is a current row at version ``place``."""
        return self.removals[version.place].count_at(place) == _rows_of(version)

    def _manifest(
        self, shown: Shown, name: str, content: Content, place: int, files: tuple[FileEntry, ...]
    ) -> TableManifest:
        version = self.history.versions[place]
        raw = encode_manifest(files, content, self._schema(shown, version.schema))
        path = f"{self.location}/{shown}/{name}"
        return TableManifest(path, raw, content, version, files)

    def _entry(self, version: Version, status: Status) -> FileEntry:
        return FileEntry(
            path=self._data_path(version),
            rows=_rows_of(version),
            size_bytes=self._sizes[version.place],
            since=version,
            status=status,
        )

    def _data_path(self, version: Version) -> str:
        return f"{self.location}/slices/{version.slice.physical_hash}.parquet"

    def _deletes(self, place: int, count: int) -> bytes:
        rows = self.removals[place].rows[:count]
        return encode_deletes(self._data_path(self.history.versions[place]), rows)


def folder_of(dataset_id: DatasetId) -> str:
    """Name the folder of a dataset's files: its identity without ``did:odf:``."""
    return str(dataset_id).removeprefix(DatasetId.scheme)


def encode_metadata(metadata: dict[str, Any]) -> bytes:
    """Encode the metadata of a table."""
    return json.dumps(metadata, separators=(",", ":")).encode()


def _rows_of(version: Version) -> int:
    return version.slice.offset_interval.row_count
