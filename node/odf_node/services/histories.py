"""Two histories of one dataset: proving that its key vouched for both (ACCEPT-9)."""

from collections.abc import Sequence

from odf_node.ports import MetadataStore
from odf_node.services.verification import OfferedBlock
from odf_protocol.did import DidKey
from odf_protocol.equivocation import MAX_PATH_BLOCKS, EquivocationKind, EquivocationProof, prove_equivocation
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.heads import SignedHead, decode_signed_head


def find_equivocation(
    store: MetadataStore, signed_head: bytes | None, blocks: Sequence[OfferedBlock]
) -> EquivocationProof | None:
    """Prove that an offered head contradicts the one held here, where it does and one key signed both.

    Args:
        store: Has the head held here.
        signed_head: As offered, untrusted.
        blocks: As offered, up to that head, oldest first.
    """
    if signed_head is None:
        return None
    try:
        offered = decode_signed_head(signed_head)
        held = store.find_signed_head(offered.dataset_id)
        if held is None or offered.signer != DidKey(offered.dataset_id.public_key):
            return None
        path = _path_between(store, offered, held.head.sequence_number, blocks)
        return prove_equivocation(EquivocationKind.HEADS, offered.raw, held.raw, path=path)
    except (MalformedError, RejectedError):
        return None  # the two heads can both be true, or one of them is none


def _path_between(
    store: MetadataStore, offered: SignedHead, held_number: int, blocks: Sequence[OfferedBlock]
) -> list[bytes]:
    """List the raw blocks from the higher head down to the one above the lower head (EQUIV-5)."""
    distance = offered.sequence_number - held_number
    if abs(distance) > MAX_PATH_BLOCKS:
        return []
    if distance > 0:
        return [block.raw for block in reversed(blocks[-distance:])]
    between = store.iter_blocks(offered.dataset_id, after=offered.sequence_number, upto=held_number)
    return [block.raw for block in between][::-1]
