"""Steps (0) to (3) of an acceptance (``acceptance``): what can be known from the metadata, while they arrive.

Blocks are checked batch by batch and wait in a stage, so that a chain of any length takes a bounded memory (ACCEPT-11).
What comes after a block that is rejected is kept unchecked: it belongs to the evidence.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from odf_node.acceptance.checked_chain import ChainCheck, CheckedChain, stage_unchecked
from odf_node.acceptance.further_rules import list_further_rules
from odf_node.acceptance.histories import find_fork, find_last_common
from odf_node.acceptance.offers import Candidate, Proposal
from odf_node.acceptance.rejecting import Rejecter
from odf_node.datasets.chains import load_view
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs, ProposedKeys
from odf_node.ports.block_stage import BlockStage, ProposedBlock
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.errors import HeadMovedError
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.chain.stored_state import decode_state
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.events import Seed
from odf_protocol.heads import SignedHead, verify_head
from odf_protocol.key_history import KeyHistory

MAX_BLOCKS: Final = 1_000_000
"""Blocks in one offer.  # guess: some 300 MB of metadata; a longer chain comes in several offers"""


class Examination:
    """One offer under examination; used by one thread at a time."""

    def __init__(
        self,
        store: MetadataStore,
        proposal: Proposal,
        stage: BlockStage,
        rejecter: Rejecter,
        *,
        last: ProposedBlock | None = None,
    ) -> None:
        """Begin.

        Args:
            store: What the home keeps.
            proposal: What is offered, but for the blocks that are still to come.
            stage: Where blocks wait; empty, and closed by the caller when the candidate is judged.
            rejecter: Keeps the evidence and gives the error to raise.
            last: The last block of the offer, where all are here already.
        """
        self._store = store
        self._proposal = proposal
        self._stage = stage
        self._rejecter = rejecter
        self._last = last
        self._check: ChainCheck | None = None
        self._dataset_id: DatasetId | None = None
        self._keys: ProposedKeys | None = None
        self._record: DatasetRecord | None = None
        self._signed_head: SignedHead | None = None
        self._error: OdfError | None = None

    @property
    def has_rows(self) -> bool:
        """Whether some block so far has data, and all hold."""
        return self._error is None and self._check is not None and self._check.has_rows

    def note_fork(self, parts_after: int | None, parting: ProposedBlock | None = None) -> None:
        """Say which block was found to be the last one that the offer has in common with what is held here (ACCEPT-12).

        -1: none; None: nobody could say. ``parting`` is the one behind it, where it is not in the offer.
        """
        self._proposal = replace(self._proposal, parts_after=parts_after, parting=parting)

    def take(self, blocks: Iterable[ProposedBlock]) -> None:
        """Check the next blocks; what is wrong with them is said by ``finish``.

        Raises:
            HeadMovedError: The copy that the offer continues has grown; ask the peer again.
            HomeFullError, HomeReadOnlyError: They cannot be kept.
            UsageError: A rule that this node alone has cannot be used.
        """
        left = iter(blocks)
        if self._error is None:
            for item in left:
                try:
                    if len(self._stage) == MAX_BLOCKS:
                        raise _wrong_number("more")
                    if self._check is None:
                        self._check = self._begin(item)
                    self._check.take(item)
                except (RejectedError, MalformedError, UnsupportedError) as error:
                    self._error = error
                    stage_unchecked(self._stage, [item])
                    break
        stage_unchecked(self._stage, left)

    def finish(self) -> Candidate:
        """Say what was found.

        Raises:
            ProposalRejectedError: A step failed; evidence is kept.
        """
        try:
            if self._error is not None:
                raise self._error
            if self._check is None:
                raise _wrong_number(0)  # (0)
            return self._conclude(self._check.finish())
        except (RejectedError, MalformedError, UnsupportedError) as error:
            raise self._rejecter.reject(self._proposal, error) from error

    def _begin(self, first: ProposedBlock) -> ChainCheck:
        proposal = self._proposal
        dataset_id = self._dataset_id = self._identify(first)  # (1)
        record = self._record = self._store.find_dataset(dataset_id)
        if record is not None and record.origin is Origin.OWN:
            raise RejectedError(f"ACCEPT-8 own-datasets-are-written-here-only ('{record.name}')")
        self._keys = KeyLogs(self._store).compare(dataset_id, proposal.key_events)
        self._read_signed_head(self._keys.history, record)  # (2)
        before = state = None
        if record is not None and proposal.base is not None:
            held, state_bytes = self._store.get_chain_state(dataset_id)
            if held != proposal.base:
                # Not the peer's doing: somebody of ours wrote since the offer was asked for.
                raise HeadMovedError(dataset_id, proposal.base.hash, held.hash)
            before = load_view(self._store, dataset_id, upto=proposal.base.sequence_number)
            state = decode_state(state_bytes)
        return ChainCheck(  # (3)
            self._stage,
            keys=self._keys.history,
            state=state,
            before=before,
            signed=self._signed_head is not None,
            further=list_further_rules(),
        )

    def _identify(self, first: ProposedBlock) -> DatasetId:
        """Say whose dataset the offer is: that of the copy it continues, or that of its Seed (ACCEPT-8)."""
        proposal = self._proposal
        named = next((r for r in self._store.list_datasets() if r.name.lower() == proposal.local_name.lower()), None)
        if proposal.base is not None:
            if named is None:
                raise ValueError(f"there is no copy of {proposal.name} to continue")
            if proposal.expected_id not in {None, named.id}:
                raise RejectedError(
                    "ACCEPT-8 identity-is-the-expected-one", expected=proposal.expected_id, found=named.id
                )
            return named.id
        block = decode_block(first.raw, expected_hash=None)
        if not isinstance(block.event, Seed):
            raise RejectedError("CHAIN-1 first-block-is-seed", sequence_number=0, found=type(block.event).__name__)
        found = block.event.dataset_id
        if named is not None and named.id != found:
            raise RejectedError(f"ACCEPT-8 name-keeps-its-identity ('{proposal.name}')", expected=named.id, found=found)
        if proposal.expected_id not in {None, found}:
            raise RejectedError("ACCEPT-8 identity-is-the-expected-one", expected=proposal.expected_id, found=found)
        return found

    def _read_signed_head(self, keys: KeyHistory, record: DatasetRecord | None) -> None:
        if self._proposal.signed_head is None:
            if record is not None and record.pinned_key is not None:
                # A peer must not get rid of a check by leaving the proof out.
                raise RejectedError("ACCEPT-3 signed-dataset-stays-signed", expected="a signed head", found="none")
            return
        self._signed_head = verify_head(self._proposal.signed_head, keys.dataset_id, keys=keys)
        if self._last is not None:
            self._require_last(self._last)

    def _require_last(self, proposed: ProposedBlock) -> None:
        head = self._signed_head
        if head is None:
            return
        last = decode_block(proposed.raw, expected_hash=None)
        if (head.sequence_number, head.block_hash) != (last.sequence_number, last.hash):
            raise RejectedError(
                "HEAD signed-head-is-the-last-block",
                sequence_number=last.sequence_number,
                expected=f"block {head.sequence_number} {head.block_hash}",
                found=f"block {last.sequence_number} {last.hash}",
            )

    def _conclude(self, chain: CheckedChain) -> Candidate:
        proposal, record, dataset_id = self._proposal, self._record, chain.dataset_id
        self._require_last(self._stage[-1])  # (2)
        Disputes(self._store).require_undisputed(dataset_id, proposal.name, chain.hashes)
        fork: int | None = None
        if record is not None and proposal.base is None and proposal.replaces_history:
            fork = find_fork(self._store, record, chain.hashes, proposal.signed_head)
        elif record is not None and proposal.base is None:
            self.note_fork(find_last_common(self._store, record, chain.hashes))
            raise RejectedError(
                "ACCEPT-9 offer-continues-the-history-held-here",
                expected=f"block {record.head.sequence_number} {record.head.hash}",
                found=f"another history, up to block {chain.last.sequence_number} {chain.last.hash}",
            )
        replaced = record.head if record is not None and fork is not None else None
        assert self._keys is not None
        is_signed = self._signed_head is not None
        return Candidate(proposal, dataset_id, record is None, is_signed, chain, self._keys, replaced, fork)


def _wrong_number(found: object) -> RejectedError:
    return RejectedError("EX-LIMIT blocks-in-one-offer", expected=f"1 to {MAX_BLOCKS}", found=found)
