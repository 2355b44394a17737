"""Verification of many blocks: the same rules and outcomes as ``append``, some twenty times as fast.

Every block is hashed. Ordinary blocks of data, laid out like one that ``append`` has accepted, are read by position and
judged by ``Cursor``; every other block, and every block that the cursor does not take, goes through ``append``.

Source: clause CHAIN-50 of ``spec/chain.md``.
"""

from collections.abc import Iterable
from hashlib import sha3_256
from typing import NamedTuple

from odf_protocol.block import Block, decode_block
from odf_protocol.block_shape import KnownShapes
from odf_protocol.block_traits import traits_of
from odf_protocol.chain.append import append
from odf_protocol.chain.cursor import Cursor
from odf_protocol.chain.rule import ChainWarning, Strictness
from odf_protocol.chain.state import ChainState

MAX_WARNINGS = 1_000  # guess: more say nothing new; all are counted


class VerifiedBlock(NamedTuple):
    """What is known of a block that was verified.

    Attributes:
        digest: SHA3-256 of it, 32 bytes.
        traits: What it is good for (``block_traits``).
        block: The block decoded, None where that was not needed.
    """

    digest: bytes
    traits: int
    block: Block | None


class ChainVerifier:
    """Verifies a chain in as many batches as the caller likes; memory does not grow with the chain.

    >>> verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    >>> verifier.verify([])
    []

    Attributes:
        warnings: What foreign blocks break that would be refused in our own; the first thousand.
        warning_count: How many there were.
    """

    def __init__(self, state: ChainState | None, *, strictness: Strictness) -> None:
        """Begin after ``state``; None begins a new chain."""
        self.warnings: list[ChainWarning] = []
        self.warning_count = 0
        self._state = state
        self._strictness = strictness
        self._cursor = self._cursor_at(state)
        self._shapes = KnownShapes()

    @property
    def state(self) -> ChainState | None:
        """The state after the last block accepted; None before the first."""
        return self._cursor.to_state() if self._cursor else self._state

    def verify(self, raws: Iterable[bytes]) -> list[bytes]:
        """Verify the next blocks.

        A block's hash is not compared with anything here but the link in the block after it: the caller compares the
        last one, or all, with what it was told.

        Returns:
            SHA3-256 of each block, 32 bytes.

        Raises:
            MalformedError: Not a block.
            UnsupportedError: A block of a version or with an event that we do not know.
            RejectedError: A rule is broken. As after the other errors, ``state`` is that before the block.
        """
        return [self.take(raw).digest for raw in raws]

    def take(self, raw: bytes) -> VerifiedBlock:
        """Verify the next block, as ``verify`` does, and say what is known of it."""
        if self._cursor is not None:
            for shape in self._shapes.iter_matching(raw):
                digest = sha3_256(raw).digest()
                if self._cursor.take(shape, raw, digest):
                    return VerifiedBlock(digest, shape.traits, None)
        return self._take_carefully(raw)

    def _take_carefully(self, raw: bytes) -> VerifiedBlock:
        block = decode_block(raw, expected_hash=None)
        state, warnings = append(self.state, block, strictness=self._strictness)
        self._state, self._cursor = state, self._cursor_at(state)
        self.warning_count += len(warnings)
        self.warnings.extend(warnings[: MAX_WARNINGS - len(self.warnings)])
        if not warnings:
            self._shapes.remember(block)
        return VerifiedBlock(block.hash.digest, traits_of(block.event), block)

    @staticmethod
    def _cursor_at(state: ChainState | None) -> Cursor | None:
        return Cursor(state) if state is not None and Cursor.can_follow(state) else None
