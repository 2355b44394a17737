"""Auditing: verify datasets, held or at addresses, several at once, and say under this node's name what was found.

What lies at an address is brought into a home of its own below ``cache/audits``, verified there like what is held, and
never becomes part of this node. It stays for the next time, so that only what is new is fetched and verified.

Source: clauses VERIFY-1 to VERIFY-8 in ``spec/extensions/verification.md``.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from odf_node.ports import KeyStore, MetadataStore
from odf_node.services.statements import row_of
from odf_node.services.verifying import Finding
from odf_protocol.attestations import BlockRef
from odf_protocol.statements import decode_statement
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import Checked, Problem, sign_verification

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Task:
    """One dataset to verify: ``work`` does it, in whatever thread."""

    name: str
    work: Callable[[Say], Finding]


def run_tasks(tasks: Sequence[Task], jobs: int, say: Callable[[str, str], None]) -> Iterator[Finding]:
    """Do tasks, several at once, and yield what they found in the order of the tasks.

    Args:
        tasks: What to do. Those that need inputs verified first come after them; they are independent otherwise.
        jobs: How many at once; 1 runs in this thread.
        say: Hears the name of a task and what it is at.
    """
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task.work(lambda text, name=task.name: say(name, text))  # type: ignore[misc]
        return
    with ThreadPoolExecutor(jobs, thread_name_prefix="verify") as threads:
        running = [
            threads.submit(task.work, lambda text, name=task.name: say(name, text))  # type: ignore[misc]
            for task in tasks
        ]
        try:
            for future in running:
                yield future.result()
        finally:
            for future in running:
                future.cancel()


def publish_finding(finding: Finding, store: MetadataStore, keys: KeyStore, *, now: Timestamp) -> bytes | None:
    """Sign what was found and keep it, so that whoever pulls the dataset from here gets it too (ATTEST-20).

    Returns:
        The statement, None where this run looked at no block.
    """
    first, last = finding.first, finding.last
    if first is None or last is None or finding.dataset_id is None:
        return None
    problem = None
    if not finding.is_valid:
        problem = Problem(finding.rule, finding.problem, finding.problem_block)
    raw = sign_verification(
        keys.get_or_create_node_key().seed,
        dataset_id=finding.dataset_id,
        first=BlockRef(first.sequence_number, first.hash),
        last=BlockRef(last.sequence_number, last.hash),
        checked=Checked(
            blocks=last.sequence_number - first.sequence_number + 1,
            slices=finding.slices,
            slices_in_range=finding.slices_in_range,
            rows=finding.rows,
            steps=finding.replayed_steps or 0,
            steps_in_range=finding.steps_in_range,
        ),
        problem=problem,
        time=now,
    )
    store.put_attestation(row_of(decode_statement(raw), now))
    return raw
