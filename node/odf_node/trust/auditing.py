"""Auditing: verify datasets, held or at addresses, several at once, and say under this node's name what was found.

What lies at an address is brought into a home of its own below ``cache/audits``, verified there like what is held, and
never becomes part of this node. It stays for the next time, so that only what is new is fetched and verified.

Source: clauses VERIFY-1 to VERIFY-8 in ``spec/extensions/verification.md``.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from odf_node.datasets.chains import iter_decoded
from odf_node.ports.keys import KeyStore
from odf_node.ports.progress import OnProgress, report_under
from odf_node.records.evidence import HeldAttestation
from odf_node.store import MetadataStore
from odf_node.trust.verifying import VerificationFinding
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.head import Head
from odf_protocol.in_toto import BlockRef
from odf_protocol.statements import decode_statement
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import Checked, VerificationProblem, VerificationStatement, sign_verification


@dataclass(frozen=True, slots=True)
class Task:
    """One dataset to verify: ``work`` does it, in whatever thread."""

    name: str
    work: Callable[[OnProgress], VerificationFinding]


def run_tasks(tasks: Sequence[Task], jobs: int, on_progress: OnProgress) -> Iterator[VerificationFinding]:
    """Do tasks, several at once, and yield what they found in the order of the tasks.

    Args:
        tasks: What to do. Those that need inputs verified first come after them; they are independent otherwise.
        jobs: How many at once; 1 runs in this thread.
        on_progress: Hears the name of a task, and what it is at.
    """
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task.work(report_under(task.name, on_progress))
        return
    with ThreadPoolExecutor(jobs, thread_name_prefix="verify") as threads:
        running = [threads.submit(task.work, report_under(task.name, on_progress)) for task in tasks]
        try:
            for future in running:
                yield future.result()
        finally:
            for future in running:
                future.cancel()


def publish_finding(
    finding: VerificationFinding, store: MetadataStore, keys: KeyStore, *, now: Timestamp
) -> bytes | None:
    """Sign what was found and keep it, so that whoever pulls the dataset from here gets it too (ATTEST-20).

    Blocks that were verified before without a statement are stated now, from memory (VERIFY-7).

    Returns:
        The statement, None where everything that this run found is stated already, or says nothing of the publisher
        (VERIFY-9).
    """
    if finding.dataset_id is None or finding.is_damage or finding.by_other_build:
        return None
    key = keys.get_or_create_node_key()
    first, last = finding.first, finding.last
    checked = Checked(
        blocks=0 if first is None or last is None else last.sequence_number - first.sequence_number + 1,
        slices=finding.slices,
        slices_in_range=finding.slices_in_range,
        rows=finding.rows,
        steps=finding.replayed_steps or 0,
        steps_in_range=finding.steps_in_range,
    )
    upto = finding.remembered_head
    if finding.is_valid and checked.is_complete and upto is not None and _is_held(finding.dataset_id, upto, store):
        start = _find_unstated(finding.dataset_id, upto, DidKey(key.public_key()), store)
        if start is not None:
            checked = _add(checked, _recount(finding.dataset_id, start, upto, store))
            first, last = start, last or upto
    if first is None or last is None:
        return None
    problem = None
    if not finding.is_valid:
        problem = VerificationProblem(finding.rule, finding.problem, finding.problem_block)
    raw = sign_verification(
        key.seed,
        dataset_id=finding.dataset_id,
        first=BlockRef(first.sequence_number, first.hash),
        last=BlockRef(last.sequence_number, last.hash),
        checked=checked,
        problem=problem,
        time=now,
        partial=finding.partial,
    )
    store.put_attestation(HeldAttestation.of(decode_statement(raw), now))
    return raw


def _find_unstated(dataset_id: DatasetId, upto: Head, node: DidKey, store: MetadataStore) -> Head | None:
    """Return the first block, up to one, that no whole statement of this node is about, or None."""
    stated: list[tuple[int, int]] = []
    for item in store.iter_attestations(dataset_id):
        if item.attester == node and store.find_block(dataset_id, item.last_block_hash) is not None:
            said = decode_statement(item.raw)
            if isinstance(said, VerificationStatement) and said.problem is None and said.checked.is_complete:
                stated.append((item.first_sequence_number, item.last_sequence_number))
    following = 0
    for first, last in sorted(stated):
        if first <= following:
            following = max(following, last + 1)
    if following > upto.sequence_number:
        return None
    stored = store.find_block_by_number(dataset_id, following)
    return None if stored is None else Head(stored.sequence_number, stored.hash)


def _recount(dataset_id: DatasetId, first: Head, last: Head, store: MetadataStore) -> Checked:
    """Count what was checked of remembered blocks: everything."""
    slices = rows = steps = 0
    for block in iter_decoded(store, dataset_id, after=first.sequence_number - 1, upto=last.sequence_number):
        if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data is not None:
            interval = block.event.new_data.offset_interval
            slices, rows = slices + 1, rows + interval.row_count
        steps += isinstance(block.event, ExecuteTransform)
    return Checked(
        blocks=last.sequence_number - first.sequence_number + 1,
        slices=slices,
        slices_in_range=slices,
        rows=rows,
        steps=steps,
        steps_in_range=steps,
    )


def _add(one: Checked, other: Checked) -> Checked:
    return Checked(
        blocks=one.blocks + other.blocks,
        slices=one.slices + other.slices,
        slices_in_range=one.slices_in_range + other.slices_in_range,
        rows=one.rows + other.rows,
        steps=one.steps + other.steps,
        steps_in_range=one.steps_in_range + other.steps_in_range,
    )


def _is_held(dataset_id: DatasetId, head: Head, store: MetadataStore) -> bool:
    """Say whether the blocks that were verified are those held here; an address may have shown others."""
    stored = store.find_block(dataset_id, head.hash)
    return stored is not None and stored.sequence_number == head.sequence_number
