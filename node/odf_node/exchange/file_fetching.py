"""Bring the files that the blocks of an offer name, those that are not here yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_node.acceptance.offers import Candidate
from odf_node.acceptance.reports import FileCount
from odf_node.acceptance.row_checks import LARGE_BYTES, RowChecks
from odf_node.errors import ObjectsAbsentError
from odf_node.ports.objects import Arrivals, ArrivingObjects
from odf_node.ports.peer_client import ObjectKind, PeerDataset
from odf_node.ports.peer_errors import PeerNotFoundError
from odf_node.ports.progress import ProgressLine
from odf_node.threads import finish_in_thread
from odf_protocol.block_traits import CHECKPOINT, ROWS
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted

MAX_ABSENT: Final = 100
"""Files that a peer may lack before it is asked for no more.  # guess: more than it lost, less than all of them"""


@dataclass(frozen=True, slots=True)
class FileFetching:
    """Fetches for one candidate; ``reader`` reads large slices as they arrive, where their rows are wanted."""

    objects: Arrivals
    reader: RowChecks
    progress: ProgressLine

    async def fetch(self, peer: PeerDataset, candidate: Candidate) -> FileCount:
        """Bring the files and say how many came; the caller holds a writing lease.

        Raises:
            PeerNotFoundError: The peer lacks some.
            ObjectsAbsentError: It lacks some of blocks that are held already; the others are here now (PART-13).
            OdfError: As ``PeerDataset.fetch_objects``.
        """
        blocks = candidate.chain.iter_blocks(ROWS | CHECKPOINT)
        wanted = {item.hash: item for block in blocks for item in iter_wanted(block.event)}
        missing = [item for item in wanted.values() if not self.objects.has(item.hash)]
        large = {n for n, item in wanted.items() if item.kind is ObjectKind.DATA and item.size_bytes >= LARGE_BYTES}
        if large and candidate.offer.portion.has_rows:
            here = large.difference(item.hash for item in missing)
            await finish_in_thread(lambda: self.reader.expect(candidate.chain, large, here))
        size_bytes = sum(item.size_bytes for item in missing)
        if missing:
            self.progress.say(f"{candidate.offer.name}: fetching")
            if candidate.offer.portion.has_rows and any(item.kind is ObjectKind.DATA for item in missing):
                self.reader.start()  # is up when the files are here
            self.progress.expect(size_bytes)
            arriving = self.reader.hearing(self.objects)
            try:
                await peer.fetch_objects(missing, arriving, self.progress.advance)
            except PeerNotFoundError as error:
                if not candidate.is_held:
                    raise
                await self._fetch_what_is_there(peer, missing, arriving)
                left = sum(not self.objects.has(item.hash) for item in missing)
                if left:
                    raise ObjectsAbsentError(candidate.offer.name, left, str(error)) from error
        return FileCount(fetched_files=len(missing), fetched_bytes=size_bytes)

    async def _fetch_what_is_there(
        self, peer: PeerDataset, missing: Sequence[WantedObject], arriving: ArrivingObjects
    ) -> None:
        """Bring files one by one from a peer that lacks some: of a dataset that is held, those that come stay."""
        lacks = 0
        for item in missing:
            if not arriving.has(item.hash) and lacks < MAX_ABSENT:
                try:
                    await peer.fetch_objects([item], arriving, self.progress.advance)
                except PeerNotFoundError:
                    lacks += 1
