"""Items for tests of gossip, signed by keys that are told apart by a number.

What was read once is remembered, also for whoever reads it with ``remembered_item``: items never change.
"""

from functools import cache

from odf_gossip_protocol import Item, ItemKind, read_item
from odf_protocol.attestations import AttestedStep, sign_attestation
from odf_protocol.did import DidKey
from odf_protocol.equivocation import EquivocationKind, check_equivocation, prove_equivocation
from odf_protocol.heads import sign_head
from odf_protocol.in_toto import BlockRef
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_rotation
from odf_protocol.settlements import sign_settlement
from odf_protocol.signatures import public_key_of
from odf_protocol.step_record import EngineIdentity
from odf_protocol.timestamp import Timestamp
from support.signing import NOON, dataset_of, some_hash

NOON_MS = NOON.unix_ms
ENGINE = EngineIdentity("spark", "4.1", some_hash("engine"))

remembered_item = cache(read_item)


def key_of(number: int) -> bytes:
    return (number + 1).to_bytes(4, "big") * 8


@cache
def head(
    key: bytes, number: int, *, text: str = "", time_ms: int = NOON_MS, expires_ms: int | None = None, by: bytes = b""
) -> Item:
    raw = sign_head(
        by or key,
        dataset_id=dataset_of(key),
        sequence_number=number,
        block_hash=some_hash(f"block {number} {text}"),
        time=Timestamp.from_unix_ms(time_ms),
        expires=None if expires_ms is None else Timestamp.from_unix_ms(expires_ms),
    )
    return remembered_item(ItemKind.HEAD, raw)


def attestation(key: bytes, dataset_key: bytes, number: int = 3, *, time_ms: int = NOON_MS) -> Item:
    block = BlockRef(number, some_hash(f"block {number}"))
    raw = sign_attestation(
        key,
        dataset_id=dataset_of(dataset_key),
        first=block,
        last=block,
        engine=ENGINE,
        steps=(AttestedStep(block=block, agrees=True, logical_hash=some_hash("rows")),),
        time=Timestamp.from_unix_ms(time_ms),
    )
    return remembered_item(ItemKind.ATTESTATION, raw)


def proof(dataset_key: bytes, number: int, *texts: str) -> Item:
    """The proof that a key signed two heads of one number."""
    one, other = (head(dataset_key, number, text=text).raw for text in texts)
    return remembered_item(ItemKind.EQUIVOCATION, prove_equivocation(EquivocationKind.HEADS, one, other).raw)


def settlement(dataset_key: bytes, of: Item, keeps: str) -> Item:
    """The owner's decision for the history in which a head has a text."""
    checked = check_equivocation(of.raw)
    kept = some_hash(f"block {checked.position} {keeps}")
    raw = sign_settlement(dataset_key, checked, keeps=kept, reason="a lost disk", time=NOON)
    return remembered_item(ItemKind.SETTLEMENT, raw)


def key_events(dataset_key: bytes, *new_keys: bytes) -> list[Item]:
    """The key log of a dataset that was handed on from key to key."""
    history, signer, items = KeyHistory.start(dataset_of(dataset_key)), dataset_key, []
    for number, new_key in enumerate(new_keys, 1):
        raw = sign_rotation(
            signer, history, new_key=DidKey(public_key_of(new_key)), first_sequence_number=number, time=NOON
        )
        history, signer = history.extend(raw), new_key
        items.append(remembered_item(ItemKind.KEY_EVENT, raw))
    return items
