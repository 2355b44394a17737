"""Free the files of derivatives, which can be computed again (CACHE-1, CACHE-2), and say what is here (CACHE-7)."""

from dataclasses import dataclass
from functools import cache

from odf_node.datasets.chains import iter_decoded
from odf_node.datasets.presence import Presence
from odf_node.derive.rebuilding import Rebuilder
from odf_node.errors import NodeBusyError, UsageError
from odf_node.exchange.remotes import Remotes
from odf_node.home import Home
from odf_node.ports.rows import RowsCache
from odf_node.records.datasets import DatasetRecord, RemoteDirection
from odf_protocol.enums import DatasetKind
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class CacheState:
    """How much of a dataset's files is here; ``files`` counts what its blocks name, each once.

    ``row_bytes`` is what rows that were written anew for engines take beside them.
    """

    record: DatasetRecord
    files: int
    size_bytes: int
    absent_files: int
    absent_bytes: int
    row_bytes: int

    @property
    def can_be_dropped(self) -> bool:
        """It is a derivative with files here."""
        return self.record.kind is DatasetKind.DERIVATIVE and self.absent_files < self.files


@dataclass(frozen=True, slots=True)
class DropReport:
    """What was freed; ``kept_files`` are named by something else too."""

    record: DatasetRecord
    files: int
    size_bytes: int
    kept_files: int


@dataclass(frozen=True, slots=True)
class DerivedCache:
    """The use case behind ``odf-node cache drop`` and ``cache list``."""

    home: Home
    rows: RowsCache
    rebuilder: Rebuilder
    remotes: Remotes

    def describe(self, record: DatasetRecord) -> CacheState:
        """Say how much of a dataset's files is here."""
        absent = Presence(self.home.store, self.home.objects).find_absent(record)
        sizes = self._sizes(record)
        lost = [size for name, size in sizes.items() if name in absent]
        row_bytes = sum(map(self.rows.get_size, sizes))
        return CacheState(record, len(sizes), sum(sizes.values()), len(lost), sum(lost), row_bytes)

    def drop(self, record: DatasetRecord) -> DropReport:
        """Free the files of a derivative that nothing else names; its blocks stay.

        Raises:
            UsageError: It is a root, or its files could not be had again.
            NodeBusyError: Somebody writes just now, who may rely on them; nothing was freed.
        """
        if record.kind is not DatasetKind.DERIVATIVE:
            raise UsageError(f"'{record.name}' is a root: nothing computes its rows again, so they stay")
        self._require_way_back(record)
        sizes = self._sizes(record)
        absent = Presence(self.home.store, self.home.objects).find_absent(record)
        here = {name: size for name, size in sizes.items() if name not in absent and self.home.objects.has(name)}
        # Noted before, so that whoever looks meanwhile sees no damage; a note about a file that is here does nothing.
        self.home.store.mark_absent(record.id, here)
        with self.home.objects.writing():
            self.home.objects.delete_later(here)
        # Asked once nobody writes any more: what was committed meanwhile may name the same bytes.
        expected = cache(self.home.store.list_expected_objects)
        if not self.home.objects.delete_unnamed(lambda name: name in expected()):
            self.home.store.mark_present(
                record.id, [name for name in here if self.home.objects.has(name)], brought=False
            )
            raise NodeBusyError("another command is writing; nothing was freed, try again when it has ended")
        gone = [name for name in here if not self.home.objects.has(name)]
        self.home.store.mark_present(record.id, [name for name in here if self.home.objects.has(name)], brought=False)
        return DropReport(record, len(gone), sum(here[name] for name in gone), len(here) - len(gone))

    def _require_way_back(self, record: DatasetRecord) -> None:
        obstacle = self.rebuilder.find_obstacle(record)
        directions = (RemoteDirection.PULL, RemoteDirection.PUSH)
        if obstacle and not any(self.remotes.list_addresses(record, each) for each in directions):
            raise UsageError(
                f"the files of '{record.name}' might not be had again, so they stay: {obstacle}, "
                "and no other place is known that has them"
            )

    def _sizes(self, record: DatasetRecord) -> dict[Multihash, int]:
        blocks = iter_decoded(self.home.store, record.id)
        return {item.hash: item.size_bytes for block in blocks for item in iter_wanted(block.event)}
