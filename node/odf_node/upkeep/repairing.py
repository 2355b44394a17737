"""Find what is missing or damaged in this node's copy of a dataset, and fetch it again (REPAIR-1 to REPAIR-5).

The head says what every block and every object has to be: from it the chain is followed back by hashes, so a source is
trusted with nothing, and only what is the very same bytes takes the place of what was lost.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from odf_node.exchange.remotes import Remotes
from odf_node.home import Home
from odf_node.ports.peer_client import PeerDataset
from odf_node.ports.progress import ProgressLine
from odf_node.records.commits import NewBlock
from odf_node.records.datasets import DatasetRecord, RemoteDirection, StoredBlock
from odf_node.records.errors import HomeCorruptError, ObjectCorruptError, ObjectNotFoundError
from odf_node.threads import finish_in_thread
from odf_node.trust.verifying import Verifier
from odf_protocol.block import Block, decode_block
from odf_protocol.chain import Strictness
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.errors import OdfError
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted, read_outline
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash


@dataclass(slots=True)
class RepairReport:
    """What was found and what became of it; ``left`` has a line for everything that could not be fixed."""

    record: DatasetRecord
    checked_blocks: int = 0
    checked_objects: int = 0
    mended_blocks: int = 0
    mended_objects: int = 0
    mended_bytes: int = 0
    sources: dict[str, None] = field(default_factory=dict)
    """Addresses that something came from."""
    failures: list[str] = field(default_factory=list)
    """Why sources could not help."""
    left: list[str] = field(default_factory=list)
    absent_objects: int = 0
    """Files that are not here by choice, and so not damaged (PART-4)."""

    @property
    def is_whole(self) -> bool:
        """Nothing is missing or damaged any more."""
        return not self.left


@dataclass(frozen=True, slots=True)
class _Lost:
    """An object that is missing or damaged, and the block that names it."""

    item: WantedObject
    sequence_number: int
    is_damaged: bool

    def describe(self) -> str:
        what = "damaged" if self.is_damaged else "missing"
        return f"{self.item.kind.value}/{self.item.hash} of block {self.sequence_number} is {what}"


@dataclass(frozen=True, slots=True)
class Repairing:
    """The use case behind ``odf-node repair``."""

    home: Home
    verifier: Verifier
    remotes: Remotes
    open_peer: Callable[[str], Awaitable[PeerDataset]]

    async def repair(self, record: DatasetRecord, sources: Sequence[str], progress: ProgressLine) -> RepairReport:
        """Check every block and object of a dataset, and fix what a source has.

        Args:
            record: Of this node.
            sources: Addresses to ask before those that the dataset came from or was pushed to.
            progress: Told what is going on.
        """
        report = RepairReport(record)
        known = list(dict.fromkeys([*sources, *self._known_sources(record)]))
        with self.home.objects.writing():
            await self._repair_blocks(report, known, progress)
            lost = await finish_in_thread(lambda: self._find_lost(report, progress))
            if lost:
                await self._repair_objects(report, lost, known, progress)
            await finish_in_thread(lambda: self._check_merge_state(record))
        if report.mended_blocks or report.mended_objects:
            detail = f"{report.mended_blocks} blocks, {report.mended_objects} objects"
            await finish_in_thread(lambda: self.home.audit.note("repair", record.name, detail))
        if (report.mended_blocks or report.mended_objects) and report.is_whole and not report.absent_objects:
            finding = await finish_in_thread(
                lambda: self.verifier.verify(record, replay=False, on_progress=progress.on_progress)
            )
            if finding.problem:
                report.left.append(finding.problem)
        return report

    def _known_sources(self, record: DatasetRecord) -> Iterator[str]:
        for direction in (RemoteDirection.PULL, RemoteDirection.PUSH):
            yield from self.remotes.list_addresses(record, direction)

    async def _repair_blocks(self, report: RepairReport, sources: Sequence[str], progress: ProgressLine) -> None:
        record = report.record
        progress.on_progress(f"{record.name}: checking the chain")
        if await finish_in_thread(lambda: self._is_chain_whole(record)):
            report.checked_blocks = record.head.sequence_number + 1
            return
        expected: Multihash | None = record.head.hash
        for number in range(record.head.sequence_number, -1, -1):
            report.checked_blocks += 1
            stored = await finish_in_thread(lambda number=number: self._find_block(record, number))  # type: ignore[misc]
            if expected is None:
                # The block after this one is lost for good, so only this node's own note says what belongs here.
                expected = None if stored is None else stored.hash
            block = _decode(stored, expected)
            if block is None and expected is not None:
                block = await self._fix_block(report, number, expected, sources, progress)
            if block is None:
                report.left.append(f"block {number} is damaged")
            expected = None if block is None else block.prev_block_hash

    def _is_chain_whole(self, record: DatasetRecord) -> bool:
        """Look at all blocks at once; where anything is wrong, they are looked at one by one."""
        verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
        try:
            for stored in self.home.store.iter_blocks(record.id):
                if verifier.take(stored.raw).digest != stored.hash.digest:
                    return False
        except OdfError:
            return False
        return verifier.state is not None and verifier.state.head == record.head.hash

    def _find_block(self, record: DatasetRecord, number: int) -> StoredBlock | None:
        try:
            return self.home.store.find_block_by_number(record.id, number)
        except HomeCorruptError:
            return None

    async def _fix_block(
        self,
        report: RepairReport,
        number: int,
        expected: Multihash,
        sources: Sequence[str],
        progress: ProgressLine,
    ) -> Block | None:
        record = report.record
        before = self._find_block(record, number - 1) if number else None
        # Who is asked by number or by hash alone never looks at the hash before.
        after = Head(number - 1, before.hash if before else expected) if number else None
        for source in sources:
            progress.on_progress(f"{record.name}: asking {source} for block {number}")
            try:
                async with await self.open_peer(source) as peer:
                    packed = [item async for item in peer.iter_blocks(after=after, upto=Head(number, expected))]
                block = decode_block(packed[-1].raw if packed else b"", expected_hash=expected)
            except OdfError as error:
                report.failures.append(str(error))
                continue
            self.home.store.fix_block(record.id, NewBlock.of(block, packed[-1].signature))
            report.mended_blocks += 1
            report.sources[source] = None
            return block
        return None

    def _find_lost(self, report: RepairReport, progress: ProgressLine) -> list[_Lost]:
        lost: list[_Lost] = []
        seen: set[Multihash] = set()
        absent = self.home.store.list_absent_objects(report.record.id)
        for number, wanted in self._iter_wanted(report):
            for item in wanted:
                if item.hash in seen:
                    continue
                seen.add(item.hash)
                report.checked_objects += 1
                progress.on_progress(f"{report.record.name}: checking {item.hash.short} of block {number}")
                try:
                    self.home.objects.check(item.hash)
                except ObjectNotFoundError:
                    if item.hash in absent:
                        report.absent_objects += 1
                        continue
                    lost.append(_Lost(item, number, is_damaged=False))
                except (ObjectCorruptError, HomeCorruptError):
                    lost.append(_Lost(item, number, is_damaged=True))
        return lost

    def _iter_wanted(self, report: RepairReport) -> Iterator[tuple[int, tuple[WantedObject, ...]]]:
        """Yield the objects that each block names, by the block's number; blocks that are damaged name none."""
        record = report.record
        if not report.left:
            for stored in self.home.store.iter_blocks(record.id):
                yield stored.sequence_number, read_outline(stored.raw).wanted
            return
        for number in range(record.head.sequence_number + 1):
            found = self._find_block(record, number)
            block = _decode(found, None if found is None else found.hash)
            yield number, tuple(iter_wanted(block.event)) if block else ()

    async def _repair_objects(
        self, report: RepairReport, lost: Sequence[_Lost], sources: Sequence[str], progress: ProgressLine
    ) -> None:
        for each in lost:
            self.home.objects.set_aside(each.item.hash)
        try:
            progress.expect(sum(each.item.size_bytes for each in lost))
            for source in sources:
                missing = [each.item for each in lost if not self.home.objects.has(each.item.hash)]
                if missing:
                    await self._fetch(report, missing, source, progress)
        finally:
            for each in lost:
                self.home.objects.take_back(each.item.hash)
        for each in lost:
            if self._is_whole(each.item.hash):
                report.mended_objects += 1
                report.mended_bytes += each.item.size_bytes
            else:
                report.left.append(each.describe())

    async def _fetch(
        self, report: RepairReport, missing: Sequence[WantedObject], source: str, progress: ProgressLine
    ) -> None:
        progress.on_progress(f"{report.record.name}: fetching from {source}")
        try:
            async with await self.open_peer(source) as peer:
                try:
                    await peer.fetch_objects(missing, self.home.objects, progress.advance)
                except OdfError as error:
                    report.failures.append(str(error))
                    # It may lack one and have the others.
                    for item in missing:
                        with suppress(OdfError):
                            await peer.fetch_objects([item], self.home.objects, progress.advance)
        except OdfError as error:
            report.failures.append(str(error))
        if any(self.home.objects.has(item.hash) for item in missing):
            report.sources[source] = None

    def _is_whole(self, object_hash: Multihash) -> bool:
        try:
            self.home.objects.check(object_hash)
        except OdfError:
            return False
        return True

    def _check_merge_state(self, record: DatasetRecord) -> None:
        """Let go of a merge state that is damaged: the next ingest computes it from the slices."""
        kept = self.home.store.find_newest_merge_state(record.id)
        if kept is not None and not self._is_whole(kept):
            self.home.objects.delete(kept)


def _decode(stored: StoredBlock | None, expected: Multihash | None) -> Block | None:
    """Decode a stored block if it is, and is noted as, what it has to be."""
    if stored is None or expected is None or stored.hash != expected:
        return None
    try:
        return decode_block(stored.raw, expected_hash=expected)
    except OdfError:
        return None
