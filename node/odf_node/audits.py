"""Where audits happen: nodes of their own for threads, and a home of its own for what is only looked at."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.errors import ObjectsAbsentError, ProposalRejectedError
from odf_node.exchange.pulling import name_in_url
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Count, OnProgress
from odf_node.records.datasets import DatasetRecord
from odf_node.trust.auditing import Task
from odf_node.trust.verifying import VerificationFinding, VerifyOptions
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.policy import Policy
from odf_protocol.transform_plan import input_ids

_APART: Final = "what is at an address is verified apart from this node's datasets: --recursive brings its inputs, too"


def list_tasks(
    node: Node, subjects: Sequence[str], *, recursive: bool, options: VerifyOptions, own_nodes: bool
) -> list[Task]:
    """Give the tasks of verifying datasets of this node and at addresses.

    Args:
        node: This node.
        subjects: Names, identities, patterns, addresses.
        recursive: Inputs too.
        options: How thoroughly.
        own_nodes: Tasks run in threads, so each gets a node (and with it engines) of its own.

    Raises:
        UnknownDatasetError: A name or pattern means nothing here.
    """
    urls = [subject for subject in subjects if "://" in subject]
    names = [subject for subject in subjects if "://" not in subject]
    records = node.verifier.select(names, recursive=recursive) if names else []
    tasks = [_held_task(node, record, options, own_node=own_nodes) for record in records]
    return tasks + [_remote_task(node, url, options, recursive=recursive) for url in urls]


def _held_task(node: Node, record: DatasetRecord, options: VerifyOptions, *, own_node: bool) -> Task:
    def work(on_progress: OnProgress) -> VerificationFinding:
        if not own_node:
            asyncio.run(_bring_files(node, record, options, on_progress))
            return node.verifier.verify(record, on_progress=on_progress, options=options)
        alone = Node(node.home.folder, node.clock)
        alone.engines.limits = node.engines.limits
        try:
            asyncio.run(_bring_files(alone, record, options, on_progress))
            return alone.verifier.verify(record, on_progress=on_progress, options=options)
        finally:
            alone.close()

    return Task(record.name, work)


async def _bring_files(node: Node, record: DatasetRecord, options: VerifyOptions, on_progress: OnProgress) -> None:
    """Bring what is not here by choice: files of the dataset, and of inputs where they can be had (PART-9)."""
    if node.store.list_absent_objects(record.id):
        await node.bringing.bring(record, None, _Progress(on_progress))
    if record.kind is not DatasetKind.DERIVATIVE or not options.replay:
        return
    transform = load_view(node.store, record.id).transform
    for dataset_id in input_ids(transform) if transform is not None else ():
        source = node.store.find_dataset(dataset_id)
        if source is not None and node.store.list_absent_objects(source.id):
            with suppress(ObjectsAbsentError):  # the finding says that it was not re-executed, and why
                await node.bringing.bring(source, None, _Progress(on_progress))


def _remote_task(node: Node, url: str, options: VerifyOptions, *, recursive: bool) -> Task:
    name = name_in_url(url)

    def work(on_progress: OnProgress) -> VerificationFinding:
        audit = Node(HomeFolder(node.home.folder.cache / "audits"), node.clock)
        audit.engines.limits = node.engines.limits
        try:
            record = asyncio.run(_bring(audit, url, on_progress, recursive=recursive))
            finding = audit.verifier.verify(record, on_progress=on_progress, options=options)
        except ProposalRejectedError as rejection:
            return _finding_of(name, rejection)
        finally:
            audit.close()
        if finding.not_checked and not recursive:
            # The home of audits is meant, whatever this node's own has.
            return replace(finding, not_checked=f"{finding.not_checked}; {_APART}")
        return finding

    return Task(name, work)


async def _bring(audit: Node, url: str, on_progress: OnProgress, *, recursive: bool) -> DatasetRecord:
    """Fetch what is new at an address, as far as it is consistent; re-execution is the verifier's part.

    With ``recursive`` the inputs are fetched from the same node, by their identities.
    """
    async with await audit.outgoing.open_peer(url) as peer:
        head = await peer.get_head()
    record = await _pull(audit, url, Policy.INTEGRITY if head.signed_head else Policy.UNSIGNED, on_progress)
    transform = load_view(audit.store, record.id).transform
    if recursive and transform is not None:
        base = url.rstrip("/").rpartition("/")[0]
        for dataset_id in input_ids(transform):
            on_progress(f"fetching the input {dataset_id}")
            await _bring_input(audit, f"{base}/{dataset_id}", dataset_id, on_progress)
    return record


async def _bring_input(audit: Node, url: str, dataset_id: DatasetId, on_progress: OnProgress) -> None:
    async with await audit.outgoing.open_peer(url) as peer:
        head = await peer.get_head()
        policy = Policy.INTEGRITY if head.signed_head else Policy.UNSIGNED
        progress = _Progress(on_progress)
        pull_request = PullRequest(url=url, name=head.name, policy=policy, expected_id=dataset_id, progress=progress)
        await audit.taking.take(peer, pull_request)


async def _pull(audit: Node, url: str, policy: Policy, on_progress: OnProgress) -> DatasetRecord:
    async with await audit.outgoing.open_peer(url) as peer:
        pull_request = PullRequest(url=url, name=name_in_url(url), policy=policy, progress=_Progress(on_progress))
        return (await audit.taking.take(peer, pull_request)).record


class _Progress:
    """A progress line that passes on what is said, not how many bytes came."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress

    def on_progress(self, label: str, count: Count | None = None, /) -> None:
        """Pass it on."""
        self._on_progress(label, count)

    def expect(self, total_bytes: int) -> None:
        """Pass over."""

    def advance(self, size_bytes: int) -> None:
        """Pass over."""


def _finding_of(name: str, rejection: ProposalRejectedError) -> VerificationFinding:
    report = rejection.report
    return VerificationFinding(
        name=name,
        dataset_id=None,
        blocks=int(report.get("blocks") or 0),
        rows=0,
        signed=False,
        replayed_steps=None,
        problem=rejection.reason,
        rule=rejection.rule,
        problem_block=rejection.sequence_number,
        divergence=report.get("divergence"),
    )
