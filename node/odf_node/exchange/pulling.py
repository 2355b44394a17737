"""Bring a dataset up to date: poll a root, run a derivative, or take what another node offers."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from odf_node.acceptance.acceptor import Acceptor
from odf_node.acceptance.completion import Completion
from odf_node.acceptance.offers import EVERYTHING, Candidate, Offer, Portion, Wishes
from odf_node.acceptance.reports import AcceptanceReport, FileCount
from odf_node.acceptance.row_checks import RowChecks
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.arrivals import BY_PULLS, open_arrivals
from odf_node.datasets.grounds import find_partial
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.writer import find_writing_time
from odf_node.derive.transforms import Transformer, TransformReport
from odf_node.errors import ObjectsAbsentError, RefusedError, UsageError
from odf_node.exchange.bringing import Bringing
from odf_node.exchange.chain_fetching import ChainFetching
from odf_node.exchange.file_fetching import FileFetching
from odf_node.exchange.pull_planning import PullTarget
from odf_node.gossip.hearing import Hearing, unless_mute
from odf_node.ingest.ingestion import Ingestor
from odf_node.ingest.report import IngestReport
from odf_node.keys.disputes import Disputes
from odf_node.ports import (
    Clock,
    DatasetRecord,
    Head,
    HeadMovedError,
    KeyLogMovedError,
    ObjectStore,
    Origin,
    Peer,
    PeerKeyChangedError,
)
from odf_node.ports.block_stage import OpenStage
from odf_node.ports.chains import ChainStore
from odf_node.ports.commits import CommitStore
from odf_node.ports.documents import DocumentStore
from odf_node.ports.evidence import EvidenceStore
from odf_node.ports.object_names import ObjectNames
from odf_node.ports.objects import Arrivals
from odf_node.ports.peer_client import (
    PeerDataset,
    PeerDescription,
    PeerHead,
    PeerSpeaks,
)
from odf_node.ports.peer_errors import PeerForbidsError
from odf_node.ports.peers import PeerStore
from odf_node.ports.progress import ProgressLine
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, NotFoundError, RejectedError, UnavailableError
from odf_protocol.events import DatasetKind
from odf_protocol.names import DatasetName
from odf_protocol.policy import Decision, Policy
from odf_protocol.timestamp import Timestamp

ATTEMPTS: Final = 5
"""How often a dataset that others write to at the same time is asked for.  # guess: as many pulls at once are rare"""

MAX_STATEMENTS: Final = 1_000
"""Attestations that are read in one pull.  # guess: years of a few auditors"""

PullReport = IngestReport | TransformReport | AcceptanceReport


@dataclass(frozen=True, slots=True)
class Pulling:
    """The use case behind ``odf-node pull``."""

    chains: ChainStore
    commits: CommitStore
    documents: DocumentStore
    evidence: EvidenceStore
    object_names: ObjectNames
    peers: PeerStore
    objects: ObjectStore
    clock: Clock
    ingestor: Ingestor
    transformer: Transformer
    acceptor: Callable[[Callable[[str], None]], Acceptor]
    open_peer: Callable[[str], Awaitable[PeerDataset]]
    open_stage: OpenStage
    bringing: Bringing
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Entered to verify what was fetched; a daemon has foreign verifications wait for each other."""

    def set_watermarks(self, names: Sequence[str], watermark: Timestamp) -> list[IngestReport]:
        """State a watermark by hand for each of the named roots."""
        records = [get_dataset(self.chains, name) for name in names]
        return [
            self.ingestor.set_watermark(record, watermark, system_time=self._writing_time(record)) for record in records
        ]

    async def pull(
        self,
        target: PullTarget,
        *,
        local_name: str | None,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
        force: bool = False,
        portion: Portion = Portion.EVERYTHING,
    ) -> PullReport:
        """Bring one dataset up to date.

        ``force``: also where that replaces the history held here (ACCEPT-10); ``portion``: how much of it, where it is
        somebody else's.

        Raises:
            RefusedError: What the peer offers is not accepted; nothing changed.
            UsageError: The request makes no sense for this dataset.
        """
        record = target.record
        if record is not None and record.origin is Origin.OWN:
            if portion is not Portion.EVERYTHING:
                raise UsageError(f"'{record.name}' is this node's own; --{portion} is for datasets of others")
            progress.say(f"{record.name}: working")
            if record.kind is DatasetKind.ROOT:
                return await self.ingestor.poll(record, writing_time=self._writing_time, say=progress.say)
            await self.bringing.bring_inputs(record, progress)
            return await finish_in_thread(
                lambda: self.transformer.run(record, writing_time=lambda: self._writing_time(record))
            )
        assert target.url is not None
        expected_id = expected_id or target.expected_id
        wishes = Wishes(published=True, force=force, portion=portion)
        *others, last = (target.url, *target.others)
        for url in others:
            try:
                return await self._pull_from(url, target, local_name, policy, expected_id, progress, wishes)
            except (UnavailableError, NotFoundError) as error:
                progress.say(f"{target.label}: {error}")
        return await self._pull_from(last, target, local_name, policy, expected_id, progress, wishes)

    def _writing_time(self, record: DatasetRecord) -> Timestamp:
        return find_writing_time(self.chains, self.clock, record.id)

    async def _pull_from(
        self,
        url: str,
        target: PullTarget,
        local_name: str | None,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
        wishes: Wishes,
    ) -> AcceptanceReport:
        name = local_name or (target.record.name if target.record else target.name)
        # Such an address says which dataset it is, or in which file; what it is called is said by the place.
        is_told_there = "/did:odf:" in url or url.endswith(".tar")
        if name is None and not is_told_there:
            name = name_in_url(url)
        async with await self.open_peer(url) as peer:
            if name is None:
                name = str(DatasetName.parse((await peer.get_head()).name))
            return await self.take(
                peer, url=url, name=name, policy=policy, expected_id=expected_id, progress=progress, wishes=wishes
            )

    async def take(
        self,
        peer: PeerDataset,
        *,
        url: str,
        name: str,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
        wishes: Wishes = EVERYTHING,
        uploaded: Arrivals | None = None,
    ) -> AcceptanceReport:
        """Take what a peer offers for a dataset, whichever side asked; errors as ``pull``.

        ``uploaded`` is what it has brought already, None where it has to be asked for.
        """
        hearing = Hearing(self.chains, self.documents, self.clock)
        for attempt in range(ATTEMPTS):
            try:
                with self.objects.writing():
                    report = await self._take(peer, url, name, policy, expected_id, progress, wishes, uploaded)
                unchecked = await finish_in_thread(lambda report=report: find_unchecked(self.commits, report.record))  # type: ignore[misc]
                return report if unchecked is None else replace(report, unchecked=unchecked.what)
            except (HeadMovedError, KeyLogMovedError):
                # Another pull or push of the dataset was faster; there is nothing wrong with this one.
                if attempt == ATTEMPTS - 1:
                    raise
                progress.say(f"{name}: grew meanwhile, asking again")
            except RejectedError as error:
                if isinstance(error, RefusedError):
                    await finish_in_thread(lambda error=error: hearing.freeze(error))  # type: ignore[misc]
                raise
        raise AssertionError("the last attempt returns or raises")

    async def _take(
        self,
        peer: PeerDataset,
        url: str,
        name: str,
        policy: Policy | None,
        expected_id: DatasetId | None,
        progress: ProgressLine,
        wishes: Wishes,
        uploaded: Arrivals | None,
    ) -> AcceptanceReport:
        progress.say(f"{name}: asking {url}")
        offered = await peer.get_head()
        # Under a name that is taken by what the asker may not know of, a dataset is known by its identity alone.
        record = self._find_held(None if wishes.kept_as else name, offered)
        hearing = Hearing(self.chains, self.documents, self.clock)
        dataset_id = record.id if record is not None else offered.dataset_id
        acceptor = self.acceptor(lambda text: progress.say(f"{name}: {text}"))
        heard = await hearing.hear_keys(peer, record, replaces=wishes.force)
        if heard.error is not None:
            nothing = Offer.of_head(offered, name, url, heard.events)
            raise acceptor.refuse(nothing, heard.error, now=self.clock.now()) from heard.error
        doubts = heard.doubts
        if dataset_id is not None:
            doubts += await hearing.hear(peer, dataset_id, offered)
        if record is not None and record.origin is Origin.OWN:
            # Another node may hold newer blocks of ours than we do: a restored backup learns of it here (HEAD-9).
            await finish_in_thread(lambda: hearing.remember(record.id, offered, url))
            raise UsageError(f"'{record.name}' is this node's own; take the other one under another name with --as")
        if record is not None and expected_id not in {None, record.id}:
            error = RejectedError("ACCEPT-8 identity-is-the-expected-one", expected=expected_id, found=record.id)
            raise acceptor.refuse(Offer.of_head(offered, record.name, url), error, now=self.clock.now())
        statements = await unless_mute(peer.list_attestations(limit=MAX_STATEMENTS))
        completed: AcceptanceReport | None = None
        if (
            record is not None
            and wishes.completes
            and Disputes(self.chains, self.documents).find_obstacle(record.id) is None
        ):
            completion = Completion(
                self.chains, self.commits, self.documents, self.evidence, self.object_names, self.objects
            )
            held = await finish_in_thread(lambda: completion.find(record, wishes.portion, url, statements))
            completed = await self._judge(peer, held, policy, acceptor, progress, uploaded) if held else None
        if record is not None and self._is_known(record, offered.head):
            Disputes(self.chains, self.documents).require_undisputed(record.id, name)
            await finish_in_thread(lambda: acceptor.keep_statements(record.id, statements, now=self.clock.now()))
            await finish_in_thread(lambda: hearing.remember(record.id, offered, url))
            return replace(completed or _up_to_date(self.chains, record, wishes), warnings=doubts)
        offer = Offer(
            name=name,
            source_url=url,
            base=None,
            blocks=(),
            signed_head=offered.signed_head,
            expected_id=expected_id,
            statements=statements,
            key_events=heard.events,
            published=wishes.published,
            replaces_history=wishes.force,
            portion=wishes.portion,
            reads=wishes.reads,
            kept_as=wishes.kept_as,
        )
        with closing(self.open_stage()) as stage:
            fetching = ChainFetching(self.chains, lambda each: acceptor.begin(each, stage, now=self.clock.now()))
            candidate = await fetching.fetch(peer, offer, record, offered, stage)
            if isinstance(candidate, DatasetRecord):
                return _up_to_date(self.chains, candidate, wishes)
            report = await self._judge(peer, candidate, policy, acceptor, progress, uploaded)
        await finish_in_thread(lambda: hearing.remember(candidate.dataset_id, offered, url))
        report = replace(report, warnings=report.warnings + doubts + self._remember_peer(peer.description))
        if completed is None:
            return report
        return replace(
            report,
            replayed_steps=report.replayed_steps + completed.replayed_steps,
            completed_blocks=completed.completed_blocks,
            completed_rows=completed.completed_rows,
            completed_files=completed.completed_files,
        )

    async def _judge(
        self,
        peer: PeerDataset,
        candidate: Candidate,
        policy: Policy | None,
        acceptor: Acceptor,
        progress: ProgressLine,
        uploaded: Arrivals | None,
    ) -> AcceptanceReport:
        if uploaded is not None:
            return await self._judge_arrivals(peer, candidate, uploaded, policy, acceptor, progress)
        # What arrives stays until it is judged, also when this process does not live to see it (HOME-19).
        with open_arrivals(self.object_names, self.objects, candidate.dataset_id, BY_PULLS) as arrivals:
            return await self._judge_arrivals(peer, candidate, arrivals, policy, acceptor, progress)

    async def _judge_arrivals(
        self,
        peer: PeerDataset,
        candidate: Candidate,
        arrivals: Arrivals,
        policy: Policy | None,
        acceptor: Acceptor,
        progress: ProgressLine,
    ) -> AcceptanceReport:
        offer, fetched = candidate.offer, FileCount()
        reader = RowChecks(arrivals.get_path)
        try:
            if offer.portion.has_files:
                fetched = await FileFetching(arrivals, reader, progress).fetch(peer, candidate)
                if policy is not Policy.INTEGRITY and offer.portion.has_rows:
                    await self.bringing.bring_for_steps(candidate.chain.view, offer.reads, progress)
            async with self.turn():
                report = await finish_in_thread(
                    lambda: acceptor.accept(candidate, arrivals, policy=policy, now=self.clock.now(), reader=reader)
                )
        except PeerForbidsError:
            raise
        except ObjectsAbsentError:
            await finish_in_thread(lambda: self._keep_what_came(candidate, arrivals))
            raise
        except RefusedError:
            arrivals.drop()
            raise
        except RejectedError as error:
            refusal = acceptor.refuse(candidate.offer, error, now=self.clock.now())
            arrivals.drop()
            raise refusal from error
        finally:
            reader.close()
        arrivals.drop()
        return _with_fetched(report, fetched)

    def _keep_what_came(self, candidate: Candidate, arrivals: Arrivals) -> None:
        """Keep files of held blocks although the peer lacked others (PART-13)."""
        came = [needed.hash for needed in candidate.needed_objects() if arrivals.has(needed.hash)]
        arrivals.keep(came)
        self.object_names.mark_brought(candidate.dataset_id, came)
        arrivals.drop()

    def _remember_peer(self, description: PeerDescription) -> tuple[str, ...]:
        """Keep who answers at an address; say so when it is somebody else than before.

        Not refused: data are judged by the keys of their datasets, and a node may be set up anew.
        """
        if description.speaks is PeerSpeaks.FOLDER:
            return ()
        peer = Peer(url=description.url, node_key=description.node_id, first_seen=self.clock.now())
        try:
            self.peers.put_peer(peer)
        except PeerKeyChangedError as error:
            return (str(error),)
        return ()

    def _find_held(self, name: str | None, offered: PeerHead) -> DatasetRecord | None:
        if offered.dataset_id is not None:
            held = self.chains.find_dataset(offered.dataset_id)
            if held is not None:
                return held
        if name is None:
            return None
        return next((record for record in self.chains.list_datasets() if record.name.lower() == name.lower()), None)

    def _is_known(self, record: DatasetRecord, head: Head) -> bool:
        return self.chains.find_block(record.id, head.hash) is not None


def name_in_url(url: str) -> str:
    """Take the local name from a URL: its last path segment, as other ODF programs do.

    Raises:
        UsageError: The URL ends in nothing that is a dataset name.
    """
    try:
        parts = urlsplit(url)
        segments = [segment for segment in parts.path.split("/") if segment]
        candidate = segments[-1] if segments else parts.hostname or ""
        return str(DatasetName.parse(candidate))
    except (MalformedError, ValueError) as error:
        raise UsageError(f"{url} does not end in a dataset name; give one with --as") from error


def _up_to_date(chains: ChainStore, record: DatasetRecord, wishes: Wishes) -> AcceptanceReport:
    nothing = Decision(True, record.trust, False, "nothing new", partial=find_partial(chains, record))
    return AcceptanceReport(record, 0, 0, 0, nothing, (), False, wishes.portion)


def _with_fetched(report: AcceptanceReport, fetched: FileCount) -> AcceptanceReport:
    """Add how many files came to the count of those that the judged blocks name."""

    def add(count: FileCount) -> FileCount:
        return replace(count, fetched_files=fetched.fetched_files, fetched_bytes=fetched.fetched_bytes)

    if report.completed_blocks:
        return replace(report, completed_files=add(report.completed_files))
    return replace(report, new_files=add(report.new_files))
