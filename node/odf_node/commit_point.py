"""The one way to write: objects first, then the one transaction that makes them count.

Source: clauses HOME-10 to HOME-12 in ``spec/home.md``.
"""

from collections.abc import Mapping

from odf_node.ports.objects import ObjectStore, ObjectUpkeep, StagedObject, SweepReport
from odf_node.records.commits import Commit
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import HomeReadOnlyError, ObjectNotFoundError
from odf_node.store import MetadataStore
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


def commit_with_objects(
    store: MetadataStore, objects: ObjectStore, commit: Commit, staged: Mapping[Multihash, StagedObject]
) -> DatasetRecord:
    """Make ``staged`` objects durable under their expected hashes, then commit; before the commit nothing happened.

    The caller holds a writing lease since before it staged them. Objects that the commit names and that are not
    staged must be in the store already, but for those that it says are absent.

    Returns:
        The record after the commit.

    Raises:
        ObjectMismatchError: A staged object's bytes have another hash than expected.
        ObjectNotFoundError: The commit names an object that is neither staged nor stored.
        HeadMovedError, NameTakenError, DatasetNotFoundError: As ``MetadataStore.commit``.
    """
    for object_hash, staged_object in staged.items():
        objects.put(staged_object, object_hash)
    for object_hash in list_named_objects(commit):
        if object_hash not in commit.absent and not objects.has(object_hash):
            raise ObjectNotFoundError(object_hash)
    return store.commit(commit)


def list_named_objects(commit: Commit) -> tuple[Multihash, ...]:
    """Return every object that the commit will refer to."""
    quarantine = () if commit.quarantine is None else (commit.quarantine.object_hash,)  # never a batch: it has no block
    merge_state = () if commit.merge_state is None else (commit.merge_state,)
    return (*commit.objects, *quarantine, *merge_state)


def sweep_leftovers(store: MetadataStore, objects: ObjectUpkeep, *, now: Timestamp) -> SweepReport:
    """Clean up after writers that were killed or failed, if there are any; costs next to nothing if not.

    Meant for the start of a process that will write; what cannot be written is left as it is.
    """
    if not objects.has_leftovers(now=now):
        return SweepReport(ran=False)
    try:
        return objects.sweep(store.list_referenced_objects, now=now)
    except HomeReadOnlyError:
        return SweepReport(ran=False)
