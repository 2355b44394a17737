"""Take what a peer offers for a dataset: the one way of blocks of others into this node, whoever asked for them.

Pulls, imports and subscriptions open a peer and go this way; a push is a peer whose dataset is here already. In order:

(a) ask for the head; know which dataset is meant, and what of it is held here;
(b) hear what the peer shows beside the blocks: key events, proofs, doubts about its head, attestations;
(c) stop where nothing may be taken: wrong keys, an own dataset, another identity than the one expected;
(d) look at what is held on its metadata alone, where that is wanted (PART-3, PART-13);
(e) fetch and examine the blocks: steps (0) to (3) of ``acceptance.acceptor``; none where the head is known; the
    reader of rows starts meanwhile;
(f) fetch the files, wait for a turn, and judge: steps (4) to (8);
(g) keep the head and the peer in mind, and write the line in the audit log.

The clock is read once, before (a). Somebody else who writes to the dataset meanwhile makes the way begin again.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from odf_engines.errors import SandboxUnavailableError
from odf_node.acceptance.acceptor import Acceptor
from odf_node.acceptance.completion import Completion
from odf_node.acceptance.offers import (
    EVERYTHING,
    AcceptanceReport,
    AcceptOptions,
    Candidate,
    FileCount,
    Proposal,
    Subset,
)
from odf_node.acceptance.row_checks import RowChecks
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.datasets.chains import find_partial
from odf_node.errors import ObjectsAbsentError, ProposalRejectedError, UsageError
from odf_node.exchange.bringing import Bringing
from odf_node.exchange.fetching import ChainFetching, FileFetching
from odf_node.exchange.hearing import Heard, Hearing, hear
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.ports.block_stage import OpenStage
from odf_node.ports.objects import Arrivals
from odf_node.ports.peer_client import PeerDataset, PeerDescription, PeerHead, PeerSpeaks, SeveralSources
from odf_node.ports.peer_errors import PeerForbidsError
from odf_node.ports.progress import OnProgress, ProgressLine, Silence, report_under
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.errors import HeadMovedError, KeyLogMovedError, PeerKeyChangedError
from odf_node.records.peers import Peer
from odf_node.store.object_names import BY_PULLS, open_arrivals
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.policy import Decision, Policy
from odf_protocol.timestamp import Timestamp

ATTEMPTS: Final = 5
"""How often a dataset that others write to at the same time is asked for.  # guess: as many pulls at once are rare"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """What is to be taken, as whoever asked for it said.

    Attributes:
        url: Where the peer is, for records and messages.
        name: What the peer's dataset is called.
        policy: What proof the user named; None: what the policies say.
        expected_id: Whose dataset it must be; None: whose the name is.
        progress: Hears how far it is.
        pull_options: What is wanted beside the blocks.
        uploaded: What a peer has brought already; None where it has to be asked for.
        actor: Who asked, for the audit log: ``cli``, ``subscription``, or who pushed.
        command: What they asked for, for the audit log.
        turn: Entered to judge what was fetched; a daemon has foreign verifications wait for each other.
    """

    url: str
    name: str
    policy: Policy | None = None
    expected_id: DatasetId | None = None
    progress: ProgressLine = field(default_factory=Silence)
    pull_options: AcceptOptions = EVERYTHING
    uploaded: Arrivals | None = None
    actor: str = "cli"
    command: str = "pull"
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True)
class Taking:
    """The use case; the module's docstring is its plan, the code repeats the letters."""

    home: Home
    acceptor: Callable[[OnProgress, Timestamp], Acceptor]
    open_stage: OpenStage
    bringing: Bringing

    async def take(self, peer: PeerDataset, pull_request: PullRequest) -> AcceptanceReport:
        """Take what a peer offers.

        Raises:
            ProposalRejectedError: It is not accepted; evidence is kept, nothing else changed.
            UsageError: The dataset is this node's own.
            HeadMovedError, KeyLogMovedError: Others wrote to the dataset all the time.
        """
        now = self.home.clock.now()
        try:
            report = await self._take_soon(peer, pull_request, now)
        finally:
            lies = tuple(map(str, peer.lies)) if isinstance(peer, SeveralSources) else ()
            await finish_in_thread(partial(self._note_lies, lies, pull_request, now))
        reported = tuple(f"a source was put aside, as what it sent is wrong: {lie}" for lie in lies)
        return replace(report, warnings=reported + report.warnings)

    async def _take_soon(self, peer: PeerDataset, pull_request: PullRequest, now: Timestamp) -> AcceptanceReport:
        hearing = Hearing(self.home.store, now)
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                with self.home.objects.writing():
                    report = await self._take(peer, pull_request, hearing, now)
            except (HeadMovedError, KeyLogMovedError):
                # Another pull or push of the dataset was faster; there is nothing wrong with this one.
                if not attempts_left:
                    raise
                pull_request.progress.on_progress(f"{pull_request.name}: grew meanwhile, asking again")
            except ProposalRejectedError as error:
                await finish_in_thread(partial(hearing.freeze, error))
                raise
            else:
                return await finish_in_thread(partial(self._conclude, report, pull_request, now))
        raise AssertionError("the last attempt returns or raises")

    async def _take(
        self, peer: PeerDataset, pull_request: PullRequest, hearing: Hearing, now: Timestamp
    ) -> AcceptanceReport:
        url, pull_options = pull_request.url, pull_request.pull_options
        pull_request.progress.on_progress(f"{pull_request.name}: asking {url}")
        proposed = await peer.get_head()  # (a)
        # Under a name that is taken by what the asker may not know of, a dataset is known by its identity alone.
        record = self._find_held(None if pull_options.kept_as else pull_request.name, proposed)
        dataset_id = record.id if record is not None else proposed.dataset_id
        acceptor = self.acceptor(report_under(pull_request.name, pull_request.progress.on_progress), now)
        heard = await hear(peer)  # (b)
        try:
            doubts = await finish_in_thread(partial(hearing.learn_keys, record, heard, replaces=pull_options.force))
        except (MalformedError, RejectedError) as error:
            nothing = Proposal.of_head(proposed, pull_request.name, url, heard.key_events)
            if record is not None:
                # Whatever is wrong with the log, two signed blocks of one number prove more.
                fetching = ChainFetching(self.home.store, acceptor)
                parts_after, parting = await fetching.find_parting(peer, record, proposed)
                nothing = replace(nothing, parts_after=parts_after, parting=parting, kept_as=record.name)
            raise acceptor.rejecter.reject(nothing, error) from error
        if dataset_id is not None:
            doubts += await finish_in_thread(partial(hearing.learn, dataset_id, heard, proposed))
        if record is not None:
            await self._require_takeable(record, proposed, pull_request, hearing, acceptor)  # (c)
        completed = None
        if record is not None and pull_options.completes:
            completed = await self._complete(peer, record, pull_request, acceptor, heard.statements)  # (d)
        if record is not None and self.home.store.find_block(record.id, proposed.head.hash) is not None:
            Disputes(self.home.store).require_undisputed(record.id, pull_request.name)
            await finish_in_thread(partial(acceptor.keep_statements, record.id, heard.statements))
            await finish_in_thread(partial(hearing.remember, record.id, proposed, url))
            return replace(completed or self._up_to_date(record, pull_options), warnings=doubts)
        with closing(self.open_stage()) as stage, closing(RowChecks()) as reader:
            proposal, fetching = _proposal_of(pull_request, proposed, heard), ChainFetching(self.home.store, acceptor)
            # What was pushed waits for its turn, and no reader with it.
            reads_soon = pull_options.subset.has_rows and pull_request.uploaded is None
            on_rows = partial(_start_early, reader) if reads_soon else _do_nothing
            candidate = await fetching.fetch(peer, proposal, record, proposed, stage, on_rows=on_rows)  # (e)
            if isinstance(candidate, DatasetRecord):
                return self._up_to_date(candidate, pull_options)
            report = await self._judge(peer, candidate, pull_request, acceptor, reader)  # (f)
        await finish_in_thread(partial(hearing.remember, candidate.dataset_id, proposed, url))  # (g)
        report = replace(report, warnings=report.warnings + doubts + self._remember_peer(peer.description, now))
        return report if completed is None else _with_completed(report, completed)

    async def _require_takeable(
        self, record: DatasetRecord, proposed: PeerHead, pull_request: PullRequest, hearing: Hearing, acceptor: Acceptor
    ) -> None:
        if record.origin is Origin.OWN:
            # Another node may hold newer blocks of ours than we do: a restored backup learns of it here (HEAD-9).
            await finish_in_thread(partial(hearing.remember, record.id, proposed, pull_request.url))
            raise UsageError(f"'{record.name}' is this node's own; take the other one under another name with --as")
        if pull_request.expected_id not in {None, record.id}:
            error = RejectedError(
                "ACCEPT-8 identity-is-the-expected-one", expected=pull_request.expected_id, found=record.id
            )
            raise acceptor.rejecter.reject(Proposal.of_head(proposed, record.name, pull_request.url), error)

    async def _complete(
        self,
        peer: PeerDataset,
        record: DatasetRecord,
        pull_request: PullRequest,
        acceptor: Acceptor,
        statements: tuple[bytes, ...],
    ) -> AcceptanceReport | None:
        if Disputes(self.home.store).find_obstacle(record.id) is not None:
            return None
        completion = Completion(self.home)
        held = await finish_in_thread(
            partial(completion.find, record, pull_request.pull_options.subset, pull_request.url, statements)
        )
        if not held:
            return None
        with closing(RowChecks()) as reader:
            return await self._judge(peer, held, pull_request, acceptor, reader)

    async def _judge(
        self, peer: PeerDataset, candidate: Candidate, pull_request: PullRequest, acceptor: Acceptor, reader: RowChecks
    ) -> AcceptanceReport:
        if pull_request.uploaded is not None:
            return await self._judge_arrivals(peer, candidate, pull_request.uploaded, pull_request, acceptor, reader)
        # What arrives stays until it is judged, also when this process does not live to see it (HOME-19).
        with open_arrivals(self.home.store, self.home.objects, candidate.dataset_id, BY_PULLS) as arrivals:
            return await self._judge_arrivals(peer, candidate, arrivals, pull_request, acceptor, reader)

    async def _judge_arrivals(
        self,
        peer: PeerDataset,
        candidate: Candidate,
        arrivals: Arrivals,
        pull_request: PullRequest,
        acceptor: Acceptor,
        reader: RowChecks,
    ) -> AcceptanceReport:
        proposal, policy, fetched = candidate.proposal, pull_request.policy, FileCount()
        try:
            if proposal.subset.has_files:
                fetched = await FileFetching(arrivals, reader, pull_request.progress).fetch(peer, candidate)
                if policy is not Policy.INTEGRITY and proposal.subset.has_rows:
                    await self.bringing.bring_for_steps(candidate.chain.view, proposal.reads, pull_request.progress)
            async with pull_request.turn():
                report = await finish_in_thread(
                    partial(acceptor.accept, candidate, arrivals, policy=policy, reader=reader)
                )
        except PeerForbidsError:
            raise
        except ObjectsAbsentError:
            await finish_in_thread(partial(self._keep_what_came, candidate, arrivals))
            raise
        except ProposalRejectedError:
            arrivals.drop()
            raise
        except RejectedError as error:
            rejection = acceptor.rejecter.reject(candidate.proposal, error)
            arrivals.drop()
            raise rejection from error
        arrivals.drop()
        return _with_fetched(report, fetched)

    def _conclude(self, report: AcceptanceReport, pull_request: PullRequest, now: Timestamp) -> AcceptanceReport:
        record, subset = report.record, pull_request.pull_options.subset
        if report.new_blocks or report.completed_blocks:
            how = "" if subset is Subset.EVERYTHING else f" ({subset})"
            detail = f"block {record.head.sequence_number}{how}"
            self.home.audit.note(pull_request.command, record.name, detail, actor=pull_request.actor, at=now)
        unchecked = find_unchecked(self.home.store, record)
        return report if unchecked is None else replace(report, unchecked=unchecked.what)

    def _note_lies(self, lies: tuple[str, ...], pull_request: PullRequest, now: Timestamp) -> None:
        """Keep in the audit log which of several nodes sent what is not so, also where the others made up for it."""
        for lie in lies:
            self.home.audit.note("put-aside", pull_request.name, lie, actor=pull_request.actor, at=now)

    def _keep_what_came(self, candidate: Candidate, arrivals: Arrivals) -> None:
        """Keep files of held blocks although the peer lacked others (PART-13)."""
        came = [needed.hash for needed in candidate.needed_objects() if arrivals.has(needed.hash)]
        arrivals.keep(came)
        self.home.store.mark_brought(candidate.dataset_id, came)
        arrivals.drop()

    def _remember_peer(self, description: PeerDescription, now: Timestamp) -> tuple[str, ...]:
        """Keep who answers at an address; say so when it is somebody else than before.

        Not rejected: data are judged by the keys of their datasets, and a node may be set up anew.
        """
        if description.speaks is PeerSpeaks.FOLDER:
            return ()
        try:
            self.home.store.put_peer(Peer(url=description.url, node_key=description.node_id, first_seen=now))
        except PeerKeyChangedError as error:
            return (str(error),)
        return ()

    def _find_held(self, name: str | None, proposed: PeerHead) -> DatasetRecord | None:
        if proposed.dataset_id is not None:
            held = self.home.store.find_dataset(proposed.dataset_id)
            if held is not None:
                return held
        if name is None:
            return None
        return next((record for record in self.home.store.list_datasets() if record.name.lower() == name.lower()), None)

    def _up_to_date(self, record: DatasetRecord, pull_options: AcceptOptions) -> AcceptanceReport:
        nothing = Decision(True, record.trust, False, "nothing new", partial=find_partial(self.home.store, record))
        return AcceptanceReport(record=record, decision=nothing, subset=pull_options.subset)


def _do_nothing() -> None:
    pass


def _start_early(reader: RowChecks) -> None:
    """Start a reader while blocks still arrive; what is wrong with them is said before what is wrong with it."""
    with suppress(SandboxUnavailableError):
        reader.start()


def _proposal_of(pull_request: PullRequest, proposed: PeerHead, heard: Heard) -> Proposal:
    """Say what is offered, but for the blocks, which come one after the other."""
    pull_options = pull_request.pull_options
    return Proposal(
        name=pull_request.name,
        source_url=pull_request.url,
        base=None,
        blocks=(),
        signed_head=proposed.signed_head,
        expected_id=pull_request.expected_id,
        statements=heard.statements,
        key_events=heard.key_events,
        published=pull_options.published,
        replaces_history=pull_options.force,
        subset=pull_options.subset,
        reads=pull_options.reads,
        kept_as=pull_options.kept_as,
    )


def _with_completed(report: AcceptanceReport, completed: AcceptanceReport) -> AcceptanceReport:
    return replace(
        report,
        replayed_steps=report.replayed_steps + completed.replayed_steps,
        completed_blocks=completed.completed_blocks,
        completed_rows=completed.completed_rows,
        completed_files=completed.completed_files,
    )


def _with_fetched(report: AcceptanceReport, fetched: FileCount) -> AcceptanceReport:
    """Add how many files came to the count of those that the judged blocks name."""
    counts = {"fetched_files": fetched.fetched_files, "fetched_bytes": fetched.fetched_bytes}
    if report.completed_blocks:
        return replace(report, completed_files=replace(report.completed_files, **counts))
    return replace(report, new_files=replace(report.new_files, **counts))
