"""Bring files that are not here by choice when somebody needs them: from other nodes, or by computing them again.

Source: clauses PART-9 to PART-12 and CACHE-3 to CACHE-5 in ``spec/extensions/partial-clones.md``.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from odf_node.datasets.chains import iter_decoded, load_view
from odf_node.datasets.changelogs import Changelogs, data_of, slice_of
from odf_node.datasets.presence import Presence, describe_remedy
from odf_node.derive.rebuilding import Rebuilder
from odf_node.errors import ObjectsAbsentError
from odf_node.exchange.remotes import Remotes
from odf_node.home import Home
from odf_node.ports.objects import Arrivals
from odf_node.ports.peer_client import PeerDataset
from odf_node.ports.progress import ProgressLine, report_under
from odf_node.readable_inputs import find_input
from odf_node.records.access import ReadGrants
from odf_node.records.datasets import DatasetRecord, Origin, RemoteDirection
from odf_node.records.errors import DatasetNotFoundError
from odf_node.rows.slice_process import RowReader, SliceProcess
from odf_node.store.object_names import BY_PULLS, open_arrivals
from odf_node.threads import finish_in_thread
from odf_protocol.block import Block, decode_block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.transform_plan import input_ids


@dataclass(slots=True)
class BringReport:
    """What came here and how; ``failures`` says what did not work on the way."""

    record: DatasetRecord
    fetched_files: int = 0
    rebuilt_files: int = 0
    size_bytes: int = 0
    sources: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class _WrongRowsError(Exception):
    """A file is not what its block says of its rows."""

    def __init__(self, name: Multihash, error: OdfError) -> None:
        super().__init__(name, error)
        self.name = name
        self.error = error


@dataclass(frozen=True, slots=True)
class Bringing:
    """Used by whatever reads rows, before it does."""

    home: Home
    rebuilder: Rebuilder
    remotes: Remotes
    open_peer: Callable[[str], Awaitable[PeerDataset]]

    async def bring(
        self, record: DatasetRecord, wanted: Iterable[Multihash] | None, progress: ProgressLine
    ) -> BringReport:
        """Bring those of the wanted files (None: all) that are not here by choice; what is here costs one question.

        Raises:
            ObjectsAbsentError: Some can be had nowhere now; the message says why.
            RejectedError: A file that came is not what its block says of its rows.
        """
        report = BringReport(record)
        marked = await finish_in_thread(lambda: self.home.store.list_absent_objects(record.id))
        marked = marked if wanted is None else marked & frozenset(wanted)
        if not marked:
            return report
        absent = marked & await finish_in_thread(
            lambda: Presence(self.home.store, self.home.objects).find_absent(record)
        )
        here = marked - absent
        if here:
            # Brought, and kept: nobody compared their rows with these blocks.
            await finish_in_thread(lambda: self._check_all(record, here))
        is_own = record.origin is Origin.OWN
        for way in (self._rebuild, self._fetch) if is_own else (self._fetch, self._rebuild):
            if absent:
                await way(report, absent, progress)
                absent &= await finish_in_thread(lambda: self.home.store.list_absent_objects(record.id))
        if not absent:
            return report
        reasons = "; ".join(dict.fromkeys(report.failures)) or "no source is known"
        raise ObjectsAbsentError(record.name, len(absent), f"{reasons}; {describe_remedy(record)}")

    async def bring_inputs(self, record: DatasetRecord, progress: ProgressLine) -> None:
        """Bring what the next step of a derivative of our own reads.

        Raises:
            ObjectsAbsentError, RejectedError: As ``bring``.
            UsageError, NotFoundError: There is no next step; an input is not held here.
        """
        transform = load_view(self.home.store, record.id).transform
        read = [record.id, *(input_ids(transform) if transform is not None else ())]
        if not any(self.home.store.find_dataset(each) and self.home.store.list_absent_objects(each) for each in read):
            return  # as almost always: planning the step twice would cost more
        needed = await finish_in_thread(lambda: self.rebuilder.list_next_files(record))
        await self._bring_all(needed, progress)

    async def bring_for_steps(self, view: DatasetView, reads: ReadGrants, progress: ProgressLine) -> None:
        """Bring the inputs of somebody else's derivative, for its steps to be run again; what cannot be had stays out.

        Whoever judges finds out what is missing, or may not be read by whoever asks, and says so (ACCEPT-2, EX-83).
        """
        for dataset_id in input_ids(view.transform) if view.transform is not None else ():
            source = find_input(self.home.store, dataset_id, reads)
            if source is not None:
                # An input whose rows are wrong is not the fault of whoever derives from it.
                with suppress(ObjectsAbsentError, RejectedError):
                    await self.bring(source, None, progress)

    async def _bring_all(self, needed: Mapping[DatasetId, Collection[Multihash]], progress: ProgressLine) -> None:
        for dataset_id, hashes in needed.items():
            source = self.home.store.find_dataset(dataset_id)
            if source is None:
                raise DatasetNotFoundError(dataset_id)
            await self.bring(source, hashes, progress)

    async def _rebuild(self, report: BringReport, absent: frozenset[Multihash], progress: ProgressLine) -> None:
        record = report.record
        if record.kind is not DatasetKind.DERIVATIVE:
            return
        try:
            steps = await finish_in_thread(lambda: self.rebuilder.list_steps(record, absent))
            needed = await finish_in_thread(lambda: self.rebuilder.list_inputs(steps))
            await self._bring_all(needed, progress)
            done = await finish_in_thread(
                lambda: self.rebuilder.rebuild(record, steps, report_under(record.name, progress.on_progress))
            )
        except OdfError as error:
            report.failures.append(f"computing it again: {error}")
            return
        report.rebuilt_files += done.files
        report.size_bytes += done.size_bytes
        report.failures += done.problems

    async def _fetch(self, report: BringReport, absent: frozenset[Multihash], progress: ProgressLine) -> None:
        record = report.record
        named = await finish_in_thread(lambda: self._find_blocks(record, absent))
        items = {item.hash: item for block in named for item in iter_wanted(block.event) if item.hash in absent}
        addresses = [
            url
            for direction in (RemoteDirection.PULL, RemoteDirection.PUSH)
            for url in self.remotes.list_addresses(record, direction)
        ]
        with (
            self.home.objects.writing(),
            open_arrivals(self.home.store, self.home.objects, record.id, BY_PULLS) as arrivals,
        ):
            for url in dict.fromkeys(addresses):
                missing = [item for item in items.values() if not arrivals.has(item.hash)]
                if missing:
                    await self._fetch_from(url, report, missing, arrivals, progress)
            arrived = [item for item in items.values() if arrivals.has(item.hash)]
            if arrived:
                progress.on_progress(f"{record.name}: checking rows")
                await finish_in_thread(lambda: self._take_in(record, named, {item.hash for item in arrived}, arrivals))
                report.fetched_files += len(arrived)
                report.size_bytes += sum(item.size_bytes for item in arrived)

    async def _fetch_from(
        self,
        url: str,
        report: BringReport,
        missing: list[WantedObject],
        arrivals: Arrivals,
        progress: ProgressLine,
    ) -> None:
        progress.on_progress(f"{report.record.name}: fetching from {url}")
        progress.expect(sum(item.size_bytes for item in missing))
        try:
            async with await self.open_peer(url) as peer:
                await peer.fetch_objects(missing, arrivals, progress.advance)
        except OdfError as error:
            report.failures.append(str(error))
        if any(arrivals.has(item.hash) for item in missing):
            report.sources.append(url)

    def _find_blocks(self, record: DatasetRecord, absent: frozenset[Multihash]) -> list[Block]:
        blocks = iter_decoded(self.home.store, record.id)
        return [block for block in blocks if any(item.hash in absent for item in iter_wanted(block.event))]

    def _check_all(self, record: DatasetRecord, names: frozenset[Multihash]) -> None:
        """Check what was brought before, and no row of it read; what is wrong does not stay."""
        with self.home.objects.writing():
            try:
                self._check(record, self._find_blocks(record, names), names, self.home.objects.get_path)
            except _WrongRowsError as wrong:
                # Marked as absent, so that a later reader asks for it, and judges it, again.
                if wrong.name not in self.home.store.list_expected_objects():
                    self.home.objects.delete(wrong.name)
                raise wrong.error from wrong
        self.home.store.mark_present(record.id, names)

    def _take_in(
        self, record: DatasetRecord, blocks: list[Block], names: Collection[Multihash], arrivals: Arrivals
    ) -> None:
        """Check what came just now, and keep it; what is wrong does not stay."""
        try:
            self._check(record, blocks, names, arrivals.get_path)
        except _WrongRowsError as wrong:
            arrivals.drop()
            raise wrong.error from wrong
        arrivals.keep(names)
        self.home.store.mark_present(record.id, names)
        arrivals.drop()

    def _check(
        self,
        record: DatasetRecord,
        blocks: list[Block],
        names: Collection[Multihash],
        path_of: Callable[[Multihash], Path],
    ) -> None:
        """Check every row of what came (ROWS-1 to ROWS-6); with the last of it, what rows take back (ROWS-12)."""
        with SliceProcess() as reader:
            counted: dict[int, int] = {}
            for block in blocks:
                event = block.event
                assert isinstance(event, AddData | ExecuteTransform)
                if event.new_data is None or event.new_data.physical_hash not in names:
                    continue
                name = event.new_data.physical_hash
                view = load_view(self.home.store, record.id, upto=block.sequence_number)
                assert view.schema is not None  # a chain rule: data come after their schema
                try:
                    counted[block.sequence_number] = reader.check(path_of(name), block, view)
                except (RejectedError, MalformedError, UnsupportedError) as error:
                    raise _WrongRowsError(name, error) from error
            if record.trust is Trust.METADATA and not self.home.store.list_absent_objects(record.id) - {*names}:
                self._check_changelog(record, counted, names, path_of, reader)

    def _check_changelog(
        self,
        record: DatasetRecord,
        counted: Mapping[int, int],
        names: Collection[Multihash],
        path_of: Callable[[Multihash], Path],
        reader: RowReader,
    ) -> None:
        """Check a whole chain that was taken on its metadata, of which all rows are here now."""
        slices = []
        for stored in self.home.store.iter_blocks_with_rows(record.id):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            name, number = data_of(block).physical_hash, block.sequence_number
            path = path_of(name) if name in names else self.home.objects.get_path(name)
            view = load_view(self.home.store, record.id, upto=number)
            slices.append(slice_of(block, path, view, taken=counted.get(number)))
        changelogs = Changelogs(self.home.store, self.home.objects, self.rebuilder.engines.rows)
        view = load_view(self.home.store, record.id)
        unsound = changelogs.find_unsound(view, first=0, new=slices, reader=reader)
        if unsound and not unsound[-1].is_excused:
            raise _WrongRowsError(unsound[-1].where.object_hash, unsound[-1].as_error())
