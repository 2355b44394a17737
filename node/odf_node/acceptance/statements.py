"""RemoteStatements of others about datasets: which are worth keeping, and what they say about new blocks.

A peer passes on whatever it has; each statement is verified by itself, so it does not matter who brought it. Strangers
cannot fill the disk: of nodes that the policies do not name, only so many statements are kept for each dataset.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from odf_node.acceptance.checked_chain import CheckedChain
from odf_node.records.datasets import BlockRole
from odf_node.records.evidence import HeldAttestation
from odf_node.store import MetadataStore
from odf_protocol import block_traits as traits
from odf_protocol.accept_policies import PolicySet
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Witness
from odf_protocol.statements import RangeCount, Statement, decode_statement, list_witnesses
from odf_protocol.timestamp import Timestamp

MAX_UNTRUSTED: Final = 100
"""RemoteStatements about one dataset by nodes that no policy names.  # guess: enough to see that others look at it"""


@dataclass(frozen=True, slots=True)
class RemoteStatements:
    """What others say, over one store; ``own_key`` is this node's, None while it has none."""

    store: MetadataStore
    policies: PolicySet
    own_key: DidKey | None

    def read_about(self, dataset_id: DatasetId, raws: Iterable[bytes]) -> list[Statement]:
        """Verify statements that a peer passed on; those that are none, or about other datasets, are passed over."""
        found = []
        for raw in raws:
            try:
                stated = decode_statement(raw)
            except OdfError:
                continue  # a bad statement proves nothing, not even that its carrier is bad
            if stated.dataset_id == dataset_id:
                found.append(stated)
        return found

    def kept_about(self, dataset_id: DatasetId) -> list[Statement]:
        """Read the statements that are kept; they are verified again."""
        return self.read_about(dataset_id, (item.raw for item in self.store.iter_attestations(dataset_id)))

    def witnesses(self, chain: CheckedChain, proposed: Sequence[Statement]) -> tuple[Witness, ...]:
        """Say who attests the new blocks, by what was offered and what is kept (POLICY-6)."""
        statements = [*proposed, *self.kept_about(chain.dataset_id)]
        own = self.own_key
        # This node's own word is no second opinion.
        others = [stated for stated in statements if stated.node != own]
        return list_witnesses(
            chain.dataset_id, chain.iter_blocks(traits.DATA), _KnownChain.of(chain, self.store), others
        )

    def select_new(
        self, dataset_id: DatasetId, proposed: Sequence[Statement], hashes: Mapping[int, Multihash], now: Timestamp
    ) -> tuple[HeldAttestation, ...]:
        """Choose what to keep of what was offered: about blocks that are held, by named auditors or a few others.

        Args:
            dataset_id: Whose statements.
            proposed: Verified.
            hashes: Of the new blocks, by number; others are looked up.
            now: When they arrived.
        """
        known = {item.id for item in self.store.iter_attestations(dataset_id)}
        unknown = sum(self._is_unknown(item.attester) for item in self.store.iter_attestations(dataset_id))
        chosen = []
        for stated in proposed:
            identity = Multihash.of_sha3_256(stated.raw)
            if identity in known or not self._is_held(dataset_id, stated, hashes):
                continue
            if self._is_unknown(stated.node):
                if unknown >= MAX_UNTRUSTED:
                    continue
                unknown += 1
            known.add(identity)
            chosen.append(HeldAttestation.of(stated, now))
        return tuple(chosen)

    def _is_unknown(self, node: DidKey) -> bool:
        return node != self.own_key and self.policies.find_auditor(node) is None

    def _is_held(self, dataset_id: DatasetId, stated: Statement, hashes: Mapping[int, Multihash]) -> bool:
        number, block_hash = stated.last.sequence_number, stated.last.hash
        if number in hashes:
            return hashes[number] == block_hash
        return self.store.find_block(dataset_id, block_hash) is not None


@dataclass(frozen=True, slots=True)
class _KnownChain:
    """The blocks in question, and those before them that are held here."""

    chain: CheckedChain
    store: MetadataStore
    slices: Sequence[int]
    steps: Sequence[int]
    """Numbers of new blocks."""

    @classmethod
    def of(cls, chain: CheckedChain, store: MetadataStore) -> Self:
        first = chain.first.sequence_number
        found = [(number, staged.traits) for number, staged in enumerate(chain.stage.iter_staged(), start=first)]
        slices, steps = ([n for n, its in found if its & wanted] for wanted in (traits.ROWS, traits.STEP))
        return cls(chain, store, slices, steps)

    def find_hash(self, sequence_number: int) -> Multihash | None:
        if sequence_number >= self.chain.first.sequence_number:
            return self.chain.hashes.get(sequence_number)
        stored = self.store.find_block_by_number(self.chain.dataset_id, sequence_number)
        return None if stored is None else stored.hash

    def count(self, first: int, last: int) -> RangeCount:
        slices, steps = (bisect_right(each, last) - bisect_left(each, first) for each in (self.slices, self.steps))
        before = min(last, self.chain.first.sequence_number - 1)
        if first > before:
            return RangeCount(slices, steps)
        held = {
            role: self.store.count_blocks(self.chain.dataset_id, role, first=first, last=before)
            for role in BlockRole
            if role > BlockRole.DEFINITION
        }
        slices += held[BlockRole.ROWS] + held[BlockRole.ROWS_AND_WATERMARK]
        # Blocks of data in a derivative are steps (CHAIN-10).
        steps += sum(held.values()) if self.chain.view.kind is DatasetKind.DERIVATIVE else 0
        return RangeCount(slices, steps)
