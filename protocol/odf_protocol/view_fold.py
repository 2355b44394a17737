"""What is in force after each block of a long chain, decoding only blocks that matter for it.

Blocks of data move a few counters, each newer one over the older ones: until somebody asks, the newest one, and the
newest one with a watermark, are all that has to be kept.
"""

from odf_protocol.block import Block, decode_block
from odf_protocol.block_traits import DATA, WATERMARK
from odf_protocol.dataset_view import DatasetView, apply, start_view


class ViewFold:
    """A ``DatasetView`` moved along a chain that has passed the chain rules; equal to applying every block."""

    __slots__ = ("_newest", "_newest_marked", "_view")

    def __init__(self, view: DatasetView | None) -> None:
        """Begin after the block that ``view`` is of; None: before the first one."""
        self._view = view
        self._newest: bytes | None = None
        self._newest_marked: bytes | None = None
        """With a watermark, and older than ``_newest``, or the same."""

    @property
    def view(self) -> DatasetView | None:
        """What is in force now; None before the first block."""
        for raw in dict.fromkeys((self._newest_marked, self._newest)):
            if raw is not None:
                assert self._view is not None
                self._view = apply(self._view, decode_block(raw, expected_hash=None))
        self._newest = self._newest_marked = None
        return self._view

    def take(self, raw: bytes, traits: int) -> None:
        """Move over a block that was checked; ``traits`` are those of its event."""
        if not traits & DATA:
            self.take_block(decode_block(raw, expected_hash=None))
            return
        self._newest = raw
        if traits & WATERMARK:
            self._newest_marked = raw

    def take_block(self, block: Block) -> None:
        """Move over a block that is decoded already."""
        view = self.view
        self._view = start_view(block) if view is None else apply(view, block)
