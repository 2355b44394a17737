"""Rows of large slices, checked as soon as their file is here, while others still arrive.

Nothing follows from a check before its turn: what it found is told where the slice is asked about, in the order of the
blocks, so an offer is rejected for the same block and on the same grounds whatever arrived first.

Source: clause ROWS-7 in ``spec/extensions/acceptance.md``.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

from odf_node.acceptance.checked_chain import CheckedChain
from odf_node.ports.objects import ArrivingObjects, StagedObject
from odf_node.rows.slice_process import SliceProcess
from odf_protocol import block_traits as traits
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

MAX_AHEAD: Final = 64
"""Slices whose blocks and schemas are kept in memory until they arrive; later ones are checked in their turn."""


@dataclass(frozen=True, slots=True)
class _Awaited:
    block: Block
    view: DatasetView


class RowChecks:
    """One reader for the slices of one offer, asked as a ``SliceProcess`` is. Closed by its maker."""

    def __init__(self) -> None:
        """Begin without a reader."""
        self._path_of: Callable[[Multihash], Path] | None = None
        self._arriving = Lock()
        self._awaited: dict[Multihash, list[_Awaited]] = {}
        self._found: dict[int, Future[int]] = {}
        self._reader = SliceProcess()
        self._thread: ThreadPoolExecutor | None = None

    def expect(
        self,
        chain: CheckedChain,
        large: Collection[Multihash],
        here: Collection[Multihash],
        path_of: Callable[[Multihash], Path],
    ) -> None:
        """Check these slices of the chain, each of which is large, when they arrive; now those that are ``here``.

        ``path_of`` says where the file of an object is that is here.
        """
        self._path_of = path_of
        for step in chain.iter_steps(traits.ROWS):
            assert isinstance(step.block.event, AddData | ExecuteTransform)
            assert step.block.event.new_data is not None
            name = step.block.event.new_data.physical_hash
            if name in large and step.after.schema is not None:
                self._awaited.setdefault(name, []).append(_Awaited(step.block, step.after))
                if sum(map(len, self._awaited.values())) >= MAX_AHEAD:
                    break
        if self._awaited:
            self._thread = ThreadPoolExecutor(1, "row-checks")
            for name in here:
                self._arrive(name)

    def start(self) -> None:
        """Start the reader: it is up when the first files are here."""
        self._reader.start()

    def hearing(self, objects: ArrivingObjects) -> ArrivingObjects:
        """Give ``objects`` to those who bring them, so that what arrives is heard of here."""
        return objects if self._thread is None else _Heard(objects, self._arrive)

    def check(self, path: Path, block: Block, view: DatasetView) -> int:
        """Say what was found, or find it now; as ``SliceProcess.check``."""
        if self._thread is None:
            return self._reader.check(path, block, view)
        found = self._found.get(block.sequence_number) or self._thread.submit(self._reader.check, path, block, view)
        return found.result()

    def fingerprint(self, path: Path, *, key: bytes, vocabulary: Vocabulary, target: BinaryIO) -> None:
        """Write fingerprints, when all slices were asked about; as ``SliceProcess.fingerprint``."""
        self._reader.fingerprint(path, key=key, vocabulary=vocabulary, target=target)

    def read_window(
        self, path: Path, *, first: int, count: int, columns: Sequence[str], max_characters: int
    ) -> list[list[tuple[str, int] | None]]:
        """Read rows as texts, when all slices were asked about; as ``SliceProcess.read_window``."""
        asked = {"first": first, "count": count, "columns": columns, "max_characters": max_characters}
        return self._reader.read_window(path, **asked)  # type: ignore[arg-type]

    def close(self) -> None:
        """End the reader, also in the middle of a slice."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._reader.stop()
            self._thread.shutdown()
        self._reader.close()

    def _arrive(self, name: Multihash) -> None:
        assert self._thread is not None
        assert self._path_of is not None
        with self._arriving:
            for each in self._awaited.pop(name, ()):
                found = self._thread.submit(self._reader.check, self._path_of(name), each.block, each.view)
                self._found[each.block.sequence_number] = found


class _Heard:
    """``ArrivingObjects`` that tell of each that is here, whole."""

    def __init__(self, objects: ArrivingObjects, tell: Callable[[Multihash], None]) -> None:
        self._objects = objects
        self._report = tell

    def has(self, object_hash: Multihash) -> bool:
        return self._objects.has(object_hash)

    def get_size(self, object_hash: Multihash) -> int:
        return self._objects.get_size(object_hash)

    def stage(self) -> StagedObject:
        return self._objects.stage()

    def stage_copy(self, path: Path) -> StagedObject:
        return self._objects.stage_copy(path)

    def resume(self, object_hash: Multihash) -> StagedObject:
        return self._objects.resume(object_hash)

    def put(self, staged: StagedObject, expected_hash: Multihash) -> None:
        self._objects.put(staged, expected_hash)
        self._report(expected_hash)
