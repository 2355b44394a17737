"""Other datasets of this node as sources of roots: their new rows, by offsets.

Source: clause ING-43 in ``spec/ingest.md``.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from odf_node.datasets.chains import iter_slices, load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.presence import Presence
from odf_node.errors import UnknownDatasetError
from odf_node.keys.disputes import Disputes
from odf_node.ports.objects import StoredObjects
from odf_node.ports.rows import RowsCache
from odf_node.ports.sources import DATASET_SCHEME, Fetched, UpToDate
from odf_node.records.datasets import DatasetRecord
from odf_node.rows.slice_process import MAX_FILES, SliceProcess
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.events import (
    DataSlice,
    FetchStep,
    FetchStepUrl,
    ReadStepParquet,
    SetPollingSource,
    SourceState,
)
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.manifest.errors import At
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import input_ids

CURSOR: Final = "odf-node/dataset-cursor"
"""The kind of a source state: how far a dataset was read; other nodes ignore it."""

MAX_BATCH_BYTES: Final = 512 * 1024 * 1024
"""Of slices in a batch; one that is larger is a batch of its own.  # guess: as of datasets that are looked into"""

_EXPECTED: Final = "dataset:NAME or dataset:did:odf:..., and perhaps ?op=true"
_TEMPLATE: Final = "${{"


@dataclass(frozen=True, slots=True)
class DatasetPlace:
    """A dataset of this node, and whether its operations are read as a column."""

    name: str
    has_operations: bool


def find_place(step: FetchStep) -> DatasetPlace | None:
    """Say which dataset a fetch step reads; None: it reads something else, or what a template will say.

    Raises:
        MalformedError: It is a URL of a dataset, and none.
    """
    if not isinstance(step, FetchStepUrl) or _TEMPLATE in step.url:
        return None
    return parse_dataset_url(step.url) if step.url.lower().startswith(f"{DATASET_SCHEME}:") else None


def parse_dataset_url(url: str) -> DatasetPlace:
    """Read the URL of a dataset.

    Raises:
        MalformedError: It is none.
    """
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    if parts.netloc or parts.fragment or not parts.path or options not in ([], [("op", "true")]):
        raise MalformedError("URL of a dataset", expected=_EXPECTED, found=url)
    return DatasetPlace(unquote(parts.path), bool(options))


@dataclass(frozen=True, slots=True)
class FollowedRows:
    """Reads what datasets of this node gained; whoever fetches holds a lease."""

    store: MetadataStore
    objects: StoredObjects
    cache: RowsCache

    def check(self, snapshot: DatasetSnapshot) -> None:
        """Reject a manifest whose source could never be followed: an unknown dataset, itself, one that rests on it.

        Raises:
            SnapshotError: It is such.
        """
        for index, event in enumerate(snapshot.metadata):
            if isinstance(event, SetPollingSource):
                self._check(event, snapshot.name, At() / "metadata" / index)

    def _check(self, source: SetPollingSource, follower: str, at: At) -> None:
        try:
            place = find_place(source.fetch)
        except MalformedError as error:
            (at / "fetch" / "url").reject(str(error.expected), str(error.found))
        if place is None:
            return
        if place.name.lower() == follower.lower():
            (at / "fetch" / "url").reject("another dataset", f"'{follower}' itself")
        if not isinstance(source.read, ReadStepParquet):
            kind = type(source.read).__name__.removeprefix("ReadStep")
            (at / "read" / "kind").reject("Parquet, as which rows of datasets come", kind)
        try:
            found = get_dataset(self.store, place.name)
        except UnknownDatasetError:
            (at / "fetch" / "url").reject("a dataset of this node", place.name)
        with suppress(UnknownDatasetError):  # which is about to be made
            if self._trust_basis(found.id, get_dataset(self.store, follower).id):
                (at / "fetch" / "url").reject("no circle", f"'{found.name}', which rests on '{follower}'")

    def fetch(
        self, place: DatasetPlace, follower: DatasetRecord, *, state: SourceState | None, folder: Path, now: Timestamp
    ) -> Fetched | UpToDate:
        """Bring the rows behind the last offset that was read, whole slices, as one Parquet file.

        Raises:
            UnknownDatasetError: There is no such dataset here.
            RejectedError: It rests on the follower, its history was replaced, or it has corrections that would be lost.
            ObjectsAbsentError: Files are not here, or nobody checked their rows.
            FrozenDatasetError: Two histories of it are signed.
        """
        record = get_dataset(self.store, place.name)
        if self._trust_basis(record.id, follower.id):
            raise RejectedError("ING-43 no-circles", expected=f"a dataset that does not rest on '{follower.name}'")
        Disputes(self.store).require_undisputed(record.id, record.name)
        view = load_view(self.store, record.id)
        last = self._find_last(state, record)
        slices, has_more = self._choose(record.id, last)
        if not slices or view.schema is None:
            return UpToDate()
        Presence(self.store, self.objects).require_checked(record, (each.physical_hash for each in slices))
        paths = EngineRows(self.store, self.objects, self.cache).get_paths(record.id, slices, view.schema)
        target = folder / f"rows-{secrets.token_hex(8)}"
        with SliceProcess() as reader, target.open("xb") as file:
            reader.write_new_rows(paths, view, file, after=last, name=record.name, has_operations=place.has_operations)
        value = {"dataset": str(record.id), "offset": slices[-1].offset_interval.end, "block": str(record.head.hash)}
        cursor = SourceState(source_name="default", kind=CURSOR, value=json.dumps(value))
        return Fetched(
            path=target, name=f"dataset:{record.name}", source_state=cursor, event_time=now, has_more=has_more
        )

    def _choose(self, dataset_id: DatasetId, last: int) -> tuple[list[DataSlice], bool]:
        chosen: list[DataSlice] = []
        for each in iter_slices(self.store, dataset_id):
            if each.offset_interval.end <= last:
                continue
            size_bytes = sum(one.size for one in chosen) + each.size
            if chosen and (size_bytes > MAX_BATCH_BYTES or len(chosen) == MAX_FILES):
                return chosen, True
            chosen.append(each)
        return chosen, False

    def _find_last(self, state: SourceState | None, record: DatasetRecord) -> int:
        """Return the last offset that was read; of another dataset nothing was read: -1."""
        if state is None or state.kind != CURSOR:
            return -1
        try:
            found = json.loads(state.value)
            offset, block = int(found["offset"]), Multihash.parse(found["block"])
            is_same = found["dataset"] == str(record.id)
        except (ValueError, KeyError, TypeError, RecursionError, MalformedError) as error:
            raise MalformedError(CURSOR, expected="dataset, offset and block", found=state.value[:200]) from error
        if is_same and self.store.find_block(record.id, block) is None:
            expected = f"block {block} in '{record.name}', up to which it was read"
            raise RejectedError("ING-43 history-stays", expected=expected, found="another history")
        return offset if is_same else -1

    def _trust_basis(self, dataset_id: DatasetId, other: DatasetId) -> bool:
        waiting, known = [dataset_id], {dataset_id}
        while waiting:
            each = waiting.pop()
            if each == other:
                return True
            for found in self._iter_origins(each):
                if found not in known:
                    known.add(found)
                    waiting.append(found)
        return False

    def _iter_origins(self, dataset_id: DatasetId) -> Iterator[DatasetId]:
        if self.store.find_dataset(dataset_id) is None:
            return
        view = load_view(self.store, dataset_id)
        if view.transform is not None:
            yield from input_ids(view.transform)
        with suppress(UnknownDatasetError, MalformedError):
            place = None if view.polling_source is None else find_place(view.polling_source.fetch)
            if place is not None:
                yield get_dataset(self.store, place.name).id
