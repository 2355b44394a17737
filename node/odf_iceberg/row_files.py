"""Files of rows as Iceberg's readers are given them: slices of this node as they are, of others what this node wrote.

What somebody else encoded is read in one way by the reader that checked it and may be read in another by the next, so
readers get rows of others as engines get them (ENGINE-26): from a file that this node wrote while it checked them. Rows
of types that Iceberg lacks are written in others. All these files are caches (HOME-24).

Source: clauses ICEBERG-12 and ICEBERG-18 in ``spec/plug-ins/iceberg.md``.
"""

import os
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from odf_iceberg.readable_types import is_readable, readable_schema
from odf_iceberg.versions import History, Version
from odf_node.composition import Node
from odf_node.datasets.engine_rows import EngineRows
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.errors import ObjectNotFoundError
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.multihash import Multihash

FORM: Final = ".iceberg"
"""How the names of files end that hold rows in types that Iceberg has."""
MAX_REMEMBERED: Final = 100_000  # guess: as many as a table has versions; some 30 MB

_Known = tuple[Path, int, int]
"""A file that was found undamaged, its inode, and its size."""


class RowFiles:
    """Finds and makes the files; used by several threads."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: OrderedDict[Multihash, _Known] = OrderedDict()
        self._lock = Lock()

    def find_sizes(self, record: DatasetRecord, history: History) -> tuple[int, ...]:
        """Give the size of the file of each version; of one whose slice is not here that of the slice.

        Raises:
            RejectedError, MalformedError, UnsupportedError, ObjectCorruptError: As ``get_path``.
        """
        held = [each for each in history.versions if self._node.objects.has(each.slice.physical_hash)]
        sizes = dict(zip((each.place for each in held), self._get_sizes(record, history, held), strict=True))
        return tuple(sizes.get(each.place, each.slice.size) for each in history.versions)

    def _get_sizes(self, record: DatasetRecord, history: History, versions: Sequence[Version]) -> list[int]:
        if all(self._is_given_as_it_is(record, history, each) for each in versions):
            return [each.slice.size for each in versions]
        return [each[2] for each in self._get_known(record, history, versions)]

    def get_path(self, record: DatasetRecord, history: History, version: Version) -> Path:
        """Return the file of a version.

        Raises:
            ObjectNotFoundError: Its slice is not here.
            RejectedError, MalformedError, UnsupportedError: Its rows, which were not checked before, are not what the
                block says, or cost too much to read.
            ObjectCorruptError: Its bytes have decayed.
        """
        ((path, _, _),) = self._get_known(record, history, [version])
        return path

    def is_at_hand(self, record: DatasetRecord, history: History, version: Version) -> bool:
        """Say whether ``get_path`` answers at once."""
        as_it_is = self._is_given_as_it_is(record, history, version)
        return as_it_is or self._find_known(version.slice.physical_hash) is not None

    def _get_known(self, record: DatasetRecord, history: History, versions: Sequence[Version]) -> list[_Known]:
        found = {each.place: self._find_known(each.slice.physical_hash) for each in versions}
        for each in versions:
            if found[each.place] is None and self._is_given_as_it_is(record, history, each):
                found[each.place] = self._remember(each, self._node.objects.get_path(each.slice.physical_hash))
        unknown = [each for each in versions if found[each.place] is None]
        if unknown:
            objects = self._node.objects
            rows = EngineRows(self._node.store, objects, objects.rows)
            paths = rows.get_paths(record.id, [each.slice for each in unknown], None)
            with SliceProcess() as reader:
                for each, path in zip(unknown, paths, strict=True):
                    given = path if _is_plain(history, each) else self._convert(reader, history, each, path)
                    found[each.place] = self._remember(each, given)
            objects.rows.trim()
        return [known for each in versions if (known := found[each.place]) is not None]

    def _convert(self, reader: SliceProcess, history: History, version: Version, path: Path) -> Path:
        """Write the rows of a file in types that Iceberg has, where that was not done before."""
        cache, name = self._node.objects.rows, version.slice.physical_hash
        if (found := cache.find(name, FORM)) is None:
            with cache.making(name, FORM) as target:
                reader.write_in_columns(path, readable_schema(history.schemas[version.schema]), target)
            found = cache.find(name, FORM)
        if found is None:
            raise ObjectNotFoundError(name)
        return found

    def _is_given_as_it_is(self, record: DatasetRecord, history: History, version: Version) -> bool:
        return record.origin is Origin.OWN and _is_plain(history, version)

    def _find_known(self, name: Multihash) -> _Known | None:
        """Return a file that was found undamaged by this process and is still there; its checksum is not read again."""
        with self._lock:
            known = self._known.get(name)
        if known is None:
            return None
        with suppress(OSError):
            there = known[0].stat()
            if (there.st_ino, there.st_size) == known[1:]:
                if there.st_nlink == 1 and known[0].is_relative_to(self._node.home.folder.rows):
                    os.utime(known[0])  # what is in use is not trimmed (HOME-25)
                return known
        return None

    def _remember(self, version: Version, path: Path) -> _Known:
        there = path.stat()
        known = path, there.st_ino, there.st_size
        with self._lock:
            self._known[version.slice.physical_hash] = known
            while len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        return known


def _is_plain(history: History, version: Version) -> bool:
    return is_readable(history.schemas[version.schema])
