"""The versions of a dataset that contracts judge, and how they stand as far as it was noted; reads no rows.

Source: CONTRACT-4, CONTRACT-8.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from odf_contracts.keeping import FindingNotes, KeptContract, NotedFinding, find_signer
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.chain.stored_state import decode_state
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class JudgedVersion:
    """A version with rows.

    Attributes:
        number: Of its block.
        block: Its hash.
        published: Its system time.
        before: The number of the version that it is compared with; None: there is none.
        before_published: Its system time.
    """

    number: int
    block: Multihash
    published: Timestamp
    before: int | None
    before_published: Timestamp | None


@dataclass(frozen=True, slots=True)
class VersionStanding:
    """How a version stands under a contract.

    Attributes:
        version: Which, with what it is compared with.
        finding: What was found; None: it was not judged yet.
        is_passed: An operator lets it pass.
    """

    version: JudgedVersion
    finding: NotedFinding | None
    is_passed: bool

    @property
    def is_good(self) -> bool:
        """Whether a step may end with it."""
        return self.is_passed or (self.finding is not None and not self.finding.broken)


def list_versions(store: MetadataStore, record: DatasetRecord) -> list[JudgedVersion]:
    """List the versions with rows of a dataset, oldest first, each with the one before it."""
    versions: list[JudgedVersion] = []
    for stored in store.iter_blocks_with_rows(record.id):
        block = decode_block(stored.raw, expected_hash=stored.hash)
        last = versions[-1] if versions else None
        before = (None, None) if last is None else (last.number, last.published)
        versions.append(JudgedVersion(stored.sequence_number, stored.hash, block.system_time, *before))
    return versions


def list_standings(home: Home, contract: KeptContract, versions: Sequence[JudgedVersion]) -> list[VersionStanding]:
    """List how versions stand under a contract by what was noted, oldest first."""
    return list(iter_standings(home, contract, versions, lambda _version: None))


def iter_standings(
    home: Home,
    contract: KeptContract,
    versions: Sequence[JudgedVersion],
    judge: Callable[[JudgedVersion], NotedFinding | None],
) -> Iterator[VersionStanding]:
    """Yield how versions stand under a contract, oldest first.

    A version is compared with the newest good one before it, else with the one before it. What was noted of it counts
    where it was compared with the same one.

    Args:
        home: Has the notes.
        contract: Which.
        versions: Of its dataset, all of them.
        judge: Judges a version of which nothing final is noted; gives None where it is left.

    Raises:
        RejectedError, MalformedError: A statement that lets a version pass is not signed by this node.
    """
    noted = FindingNotes(home.folder).find(contract)
    passed = {each.block for each in contract.list_passes(find_signer(home))} if contract.passes else set()
    good: JudgedVersion | None = None
    for each in versions:
        version = each if good is None else replace(each, before=good.number, before_published=good.published)
        finding = noted.get((str(version.block), version.before))
        if finding is None or finding.is_open:
            finding = judge(version) or finding
        standing = VersionStanding(version, finding, str(version.block) in passed)
        if standing.is_good:
            good = version
        yield standing


def find_taken(home: Home, consumer: DatasetRecord, source: DatasetRecord) -> int:
    """Give the number of the newest block of an input that a derivative took; -1: none."""
    _head, state = home.store.get_chain_state(consumer.id)
    progress = decode_state(state).progress_by_input().get(source.id)
    stored = (
        None
        if progress is None or progress.block_hash is None
        else home.store.find_block(source.id, progress.block_hash)
    )
    return -1 if stored is None else stored.sequence_number
