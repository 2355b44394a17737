"""Bring datasets up to date: poll a root, run a derivative, or take what another node offers.

Of several, inputs come first, and it is known which were made from inputs that stayed behind (REPO-4).
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from odf_node.acceptance.offers import AcceptanceReport, AcceptOptions, Subset
from odf_node.datasets.chains import with_newest_head
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.writer import find_writing_time
from odf_node.derive.step_measurements import TransformReport
from odf_node.derive.transforms import Transformer
from odf_node.errors import UsageError
from odf_node.exchange.bringing import Bringing
from odf_node.exchange.pull_planning import PullPlanner, PullTarget
from odf_node.exchange.remotes import Remotes
from odf_node.exchange.taking import PullRequest, Taking
from odf_node.home import Home
from odf_node.ingest.ingestion import Ingestor
from odf_node.ingest.report import IngestReport
from odf_node.ports.observing import DatasetVersion, Run, RunKind, place_of, version_of
from odf_node.ports.peer_client import OpenPeer
from odf_node.ports.progress import OnProgress, ProgressLine, report_under
from odf_node.records.datasets import DatasetRecord, Origin, RemoteDirection
from odf_node.store.write_queue import WriteQueue
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, NotFoundError, OdfError, UnavailableError
from odf_protocol.events import DatasetKind
from odf_protocol.names import DatasetName
from odf_protocol.policy import Policy
from odf_protocol.timestamp import Timestamp

_MAX_WAIT_S: Final = 60.0
"""How long a pull waits for another one of the same derivative; then both compute, and one of them commits.  # guess"""

PullReport = IngestReport | TransformReport | AcceptanceReport


@dataclass(frozen=True, slots=True, kw_only=True)
class PullOptions:
    """How one dataset is pulled.

    Attributes:
        local_name: What a new dataset is called here; None: as there.
        policy: What proof the user named.
        expected_id: Whose dataset it must be.
        force: Also where that replaces the history held here (ACCEPT-10).
        subset: How much of it, where it is somebody else's.
        also: Other nodes that have it: large files are read from all at once.
        command: What was asked for, for the audit log.
        actor: Who asked for it, for the audit log.
    """

    local_name: str | None = None
    policy: Policy | None = None
    expected_id: DatasetId | None = None
    force: bool = False
    subset: Subset = Subset.EVERYTHING
    also: tuple[str, ...] = ()
    command: str = "pull"
    actor: str = "cli"


@dataclass(frozen=True, slots=True)
class Pulling:
    """The use case behind ``odf-node pull``: one dataset, whoever it belongs to."""

    home: Home
    ingestor: Ingestor
    transformer: Transformer
    taking: Taking
    open_peer: OpenPeer
    bringing: Bringing

    def set_watermarks(self, names: Sequence[str], watermark: Timestamp) -> list[IngestReport]:
        """State a watermark by hand for each of the named roots."""
        reports = []
        for record in [get_dataset(self.home.store, name) for name in names]:
            at = self._writing_time(record)
            reports.append(self.ingestor.set_watermark(record, watermark, system_time=at))
            self.home.audit.note("set-watermark", record.name, str(watermark))
        return reports

    async def pull(self, target: PullTarget, pull_options: PullOptions, progress: ProgressLine) -> PullReport:
        """Bring one dataset up to date.

        Raises:
            ProposalRejectedError: What the peer offers is not accepted; nothing changed.
            UsageError: The request makes no sense for this dataset.
        """
        with self.transformer.engines.heard_by(report_under(target.label, progress.on_progress)):
            return await self._pull(target, pull_options, progress)

    async def _pull(self, target: PullTarget, pull_options: PullOptions, progress: ProgressLine) -> PullReport:
        record = target.record
        if record is None or record.origin is not Origin.OWN:
            return await self._pull_from_others(target, pull_options, progress)
        if pull_options.subset is not Subset.EVERYTHING:
            raise UsageError(f"'{record.name}' is this node's own; --{pull_options.subset} is for datasets of others")
        progress.on_progress(f"{record.name}: working")
        report = await self._continue(record, progress)
        if report.new_blocks:
            detail = f"block {report.record.head.sequence_number}"
            await finish_in_thread(
                partial(self.home.audit.note, pull_options.command, record.name, detail, actor=pull_options.actor)
            )
        return report

    async def _continue(self, record: DatasetRecord, progress: ProgressLine) -> IngestReport | TransformReport:
        if record.kind is DatasetKind.ROOT:
            return await self.ingestor.poll(record, writing_time=self._writing_time, on_progress=progress.on_progress)
        await self.bringing.bring_inputs(record, progress)
        return await finish_in_thread(partial(self._run_steps, record, report_under(record.name, progress.on_progress)))

    def _run_steps(self, record: DatasetRecord, on_progress: OnProgress) -> TransformReport:
        """Run steps; a pull of the same derivative that runs already is waited for, and leaves nothing to compute."""
        with self.home.objects.writing():
            queue = WriteQueue(self.home.folder, record.id)
            with queue.entered(time.monotonic() + _MAX_WAIT_S):
                current = with_newest_head(self.home.store, record)
                writing_time = partial(self._writing_time, current)
                return self.transformer.run(current, writing_time=writing_time, on_progress=on_progress)

    async def _pull_from_others(
        self, target: PullTarget, pull_options: PullOptions, progress: ProgressLine
    ) -> AcceptanceReport:
        """Ask one place after the other; what the last one says is what the pull says."""
        assert target.url is not None
        *others, last = (target.url, *target.others)
        for url in others:
            try:
                return await self._pull_from(url, target, pull_options, progress)
            except (UnavailableError, NotFoundError) as error:
                progress.on_progress(f"{target.label}: {error}")
        return await self._pull_from(last, target, pull_options, progress)

    async def _pull_from(
        self, url: str, target: PullTarget, pull_options: PullOptions, progress: ProgressLine
    ) -> AcceptanceReport:
        name = pull_options.local_name or (target.record.name if target.record else target.name)
        # Such an address says which dataset it is, or in which file; what it is called is said by the place.
        is_reported_there = "/did:odf:" in url or url.endswith(".tar")
        if name is None and not is_reported_there:
            name = name_in_url(url)
        shown = str(target.label if name is None else name)
        dataset = DatasetVersion(dataset_id=str(pull_options.expected_id or target.expected_id or ""), name=shown)
        run = Run(kind=RunKind.PULL, dataset=dataset, peer=place_of(url))
        with self.transformer.engines.observer.observing(run):
            report = await self._take_from(url, name, target, pull_options, progress)
            run.rows = report.new_rows
            if report.new_blocks:
                run.written = version_of(report.record)
            return report

    async def _take_from(
        self, url: str, name: str | None, target: PullTarget, pull_options: PullOptions, progress: ProgressLine
    ) -> AcceptanceReport:
        async with await self.open_peer(url, also=pull_options.also) as peer:
            pull_request = PullRequest(
                url=url,
                name=name or str(DatasetName.parse((await peer.get_head()).name)),
                policy=pull_options.policy,
                expected_id=pull_options.expected_id or target.expected_id,
                progress=progress,
                pull_options=AcceptOptions(published=True, force=pull_options.force, subset=pull_options.subset),
                command=pull_options.command,
                actor=pull_options.actor,
            )
            return await self.taking.take(peer, pull_request)

    def _writing_time(self, record: DatasetRecord) -> Timestamp:
        return find_writing_time(self.home.store, self.home.clock, record.id)


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


ShowProgress = Callable[[PullTarget], AbstractContextManager[ProgressLine]]


@dataclass(frozen=True, slots=True)
class PullOutcome:
    """What became of one target.

    Attributes:
        target: Which.
        report: What was done; None where the pull failed.
        failure: Why it failed, or why it ended before its end.
        behind: Inputs of an own derivative that are older here than they could be, because their pulls failed.
    """

    target: PullTarget
    report: PullReport | None
    failure: OdfError | None = None
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchPulling:
    """The use case behind ``odf-node pull`` of whatever number of datasets."""

    pulling: Pulling
    planner: PullPlanner
    remotes: Remotes

    async def pull(
        self, targets: Sequence[PullTarget], pull_options: PullOptions, show: ShowProgress, *, keeps_aliases: bool
    ) -> AsyncIterator[PullOutcome]:
        """Pull one after the other; one that fails does not stop the others.

        Args:
            targets: Inputs before what is derived from them.
            pull_options: Of all of them; name and identity of the one that is named by its address.
            show: Opens the line on which one tells how far it is.
            keeps_aliases: Where a dataset came from is remembered as a pull alias.
        """
        own = [target.record is not None and target.record.origin is Origin.OWN for target in targets]
        behind: dict[DatasetId, str] = {}
        for target, is_own in zip(targets, own, strict=True):
            try:
                with show(target) as progress:
                    # Where there are others' datasets, the subset is about those; with own ones alone, it makes no
                    # sense.
                    wished = (
                        replace(pull_options, subset=Subset.EVERYTHING) if is_own and not all(own) else pull_options
                    )
                    report = await self.pulling.pull(target, _options_of(target, wished), progress)
            except OdfError as error:
                if target.record is not None:
                    behind[target.record.id] = target.label
                yield PullOutcome(target, None, error)
                continue
            if keeps_aliases and target.alias is not None:
                self.remotes.add_alias(report.record, RemoteDirection.PULL, target.alias)
            failure = getattr(report, "failure", None)
            inputs = self.planner.list_inputs(report.record)
            stale = tuple(behind[each] for each, _ in inputs if each in behind) if is_own else ()
            if failure is not None or stale:
                behind[report.record.id] = target.label
            yield PullOutcome(target, report, failure, stale)


def _options_of(target: PullTarget, pull_options: PullOptions) -> PullOptions:
    """Name and identity are those of the dataset that the user named, not of its inputs."""
    return pull_options if target.alias is not None else replace(pull_options, local_name=None, expected_id=None)
