"""Files and proof for blocks that were taken on their metadata alone (PART-3, PART-13)."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from odf_node.acceptance.offers import Candidate, Proposal, Subset
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.acceptance.verification import check_stored
from odf_node.datasets.presence import Presence
from odf_node.home import Home
from odf_node.keys.logs import KeyLogs
from odf_node.records.datasets import DatasetRecord
from odf_protocol.chain import ChainState
from odf_protocol.head import Head

_CHUNK_BLOCKS: Final = 256
"""Blocks that are in memory at once while the state of the rules is found.  # guess"""


@dataclass(frozen=True, slots=True)
class Completion:
    """Finds what a pull adds to a dataset that is held in a smaller subset than is wanted."""

    home: Home

    def find(self, record: DatasetRecord, subset: Subset, url: str, statements: tuple[bytes, ...]) -> Candidate | None:
        """Read the blocks that rest on metadata alone as if ``url`` had offered them again; None: nothing to add.

        Raises:
            RejectedError, MalformedError: What is held is damaged.
        """
        unchecked = find_unchecked(self.home.store, record)
        if unchecked is None or not subset.has_files:
            return None
        if subset.has_rows or not unchecked.has_files:
            return self._read_held(record, unchecked.after, subset, url, statements)
        # They were here. Those that went since are wanted as well, unless their blocks rest on more than metadata.
        lost = Presence(self.home.store, self.home.objects).find_absent(record)
        if not lost:
            return None
        held = self._read_held(record, unchecked.after, subset, url, statements)
        return held if any(item.hash in lost for item in held.needed_objects()) else None

    def _read_held(
        self, record: DatasetRecord, after: int, subset: Subset, url: str, statements: tuple[bytes, ...]
    ) -> Candidate:
        signed = record.pinned_key is not None
        keys = KeyLogs(self.home.store).compare(record.id, ())
        check = partial(check_stored, self.home.store, record, keys=keys.history, signed=signed)
        state: ChainState | None = None
        for first in range(-1, after, _CHUNK_BLOCKS):
            state = check(state=state, upto=min(first + _CHUNK_BLOCKS, after)).state
        chain = check(state=state)
        signed_head = self.home.store.find_signed_head(record.id)
        proposal = Proposal(
            name=record.name,
            source_url=url,
            base=None if state is None else Head(state.sequence_number, state.head),
            blocks=chain.stage,
            signed_head=None if signed_head is None else signed_head.raw,
            expected_id=record.id,
            statements=statements,
            subset=subset,
        )
        return Candidate(proposal, record.id, False, signed, chain, keys, is_held=True)
