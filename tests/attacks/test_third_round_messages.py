"""Messages of gossip that are forged, doubled, or true and given out as something else.

Source: clauses GOSSIP-1 to GOSSIP-7 and GOSSIP-23 to GOSSIP-25 in ``spec/plug-ins/gossip.md``.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from odf_gossip_protocol import ItemKind, read_item
from odf_gossip_protocol.item import Item
from odf_gossip_protocol.messages import MAX_MESSAGE_BYTES, decode_reply, decode_request
from odf_protocol.errors import OdfError
from support.gossip_items import attestation, head, key_events, proof, settlement
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, OTHER_KEY


def text(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


ID, NONCE = b64(bytes(32)), b64(bytes(16))
RANGE = {"lower": ID, "fingerprint": NONCE}

REQUESTS = {
    "nothing": b"",
    "no-JSON": b"{",
    "not-UTF-8": b'{"type": "\xff"}',
    "list": b"[]",
    "deep": b"[" * 500_000,
    "deep-inside-a-field": b'{"type":"want","ids":' + b"[" * 100_000,
    "longer-than-any": b" " * (MAX_MESSAGE_BYTES + 1),
    "no-type": b"{}",
    "type-of-a-reply": text(type="welcome"),
    "type-as-a-number": text(type=7),
    "type-in-capitals": text(type="HELLO"),
    "unknown-field": text(type="hello", trust=True),
    "flag-as-a-text": text(type="hello", link="yes"),
    "flag-as-a-number": text(type="hello", link=1),
    "record-that-is-short": text(type="hello", record=b64(bytes(96))),
    "record-that-is-long": text(type="hello", record=b64(bytes(100_000))),
    "record-that-is-no-base64": text(type="hello", record="*" * 200),
    "push-of-nothing-named": text(type="push"),
    "push-of-too-many": text(type="push", items=[{"kind": "head", "raw": ""}] * 257),
    "push-with-a-kind-without-end": text(type="push", items=[{"kind": "x" * 33, "raw": ""}]),
    "push-with-more-in-an-item": text(type="push", items=[{"kind": "head", "raw": "", "verified": True}]),
    "push-of-a-list": text(type="push", items=[[]]),
    "compare-without-a-nonce": text(type="compare", ranges=[RANGE]),
    "compare-with-a-short-nonce": text(type="compare", nonce=b64(bytes(15)), ranges=[RANGE]),
    "compare-with-a-long-nonce": text(type="compare", nonce=b64(bytes(17)), ranges=[RANGE]),
    "compare-of-too-many": text(type="compare", nonce=NONCE, ranges=[RANGE] * 257),
    "compare-with-a-short-id": text(type="compare", nonce=NONCE, ranges=[{"lower": b64(bytes(31))}]),
    "compare-with-a-short-fingerprint": text(type="compare", nonce=NONCE, ranges=[{"fingerprint": b64(b"x")}]),
    "compare-with-too-many-ids": text(type="compare", nonce=NONCE, ranges=[{"ids": [ID] * 65}]),
    "want-of-too-many": text(type="want", ids=[ID] * 257),
    "want-of-a-short-id": text(type="want", ids=[b64(bytes(8))]),
    "want-of-a-number": text(type="want", ids=[7]),
    "follow-from-below-nothing": text(type="follow", epoch=NONCE, after=-1),
    "follow-beyond-all-numbers": text(type="follow", epoch=NONCE, after=2**53),
    "follow-with-a-huge-number": b'{"type":"follow","after":' + b"9" * 100_000 + b"}",
    "follow-with-a-fraction": text(type="follow", epoch=NONCE, after=0.5),
    "follow-with-no-number": b'{"type":"follow","after":NaN}',
    "follow-in-a-short-epoch": text(type="follow", epoch="AA==", after=0),
    "two-messages": text(type="hello") * 2,
}


@pytest.mark.parametrize("lie", REQUESTS)
def test_request_that_is_none_is_rejected_before_anything_is_looked_up(lie: str) -> None:
    """GOSSIP-23 to GOSSIP-25"""
    with pytest.raises(OdfError):
        decode_request(REQUESTS[lie])


REPLIES = {
    "type-of-a-request": text(type="hello"),
    "peers-of-too-many": text(type="welcome", peers=[b64(bytes(100))] * 17),
    "peers-that-are-short": text(type="welcome", peers=[b64(b"x")]),
    "items-of-too-many": text(type="items", items=[{"kind": "head", "raw": ""}] * 257),
    "ranges-of-too-many": text(type="ranges", ranges=[RANGE] * 257),
    "feed-without-an-epoch": text(type="feed", next=1),
    "feed-that-goes-back-below-nothing": text(type="feed", epoch=NONCE, next=-1),
    "feed-beyond-all-numbers": text(type="feed", epoch=NONCE, next=2**63),
    "longer-than-any": b" " * (MAX_MESSAGE_BYTES + 1),
    "deep": b'{"type":"items","x":' + b"[" * 400_000,
    "page-of-a-web-server": b"<html></html>",
}


@pytest.mark.parametrize("lie", REPLIES)
def test_reply_that_is_none_is_rejected(lie: str) -> None:
    """GOSSIP-23 to GOSSIP-25"""
    with pytest.raises(OdfError):
        decode_reply(REPLIES[lie])


def _items() -> dict[ItemKind, Item]:
    contradiction = proof(DATASET_KEY, 7, "a", "b")
    return {
        ItemKind.HEAD: head(DATASET_KEY, 7),
        ItemKind.ATTESTATION: attestation(NODE_KEY, DATASET_KEY),
        ItemKind.EQUIVOCATION: contradiction,
        ItemKind.SETTLEMENT: settlement(DATASET_KEY, contradiction, "a"),
        ItemKind.KEY_EVENT: key_events(DATASET_KEY, NEW_KEY)[0],
    }


TRUE = _items()
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "first-byte": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "byte-of-the-key": lambda raw: raw[:20] + bytes([raw[20] ^ 1]) + raw[21:],
    "byte-of-the-signature": lambda raw: raw[:60] + bytes([raw[60] ^ 1]) + raw[61:],
    "byte-in-the-middle": lambda raw: raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :],
    "last-byte": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
    "byte-less": lambda raw: raw[:-1],
    "space-behind": lambda raw: raw + b" ",
    "zero-behind": lambda raw: raw + b"\0",
    "twice": lambda raw: raw * 2,
    "without-its-head": lambda raw: raw[96:],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", TRUE)
def test_item_that_was_changed_anywhere_is_rejected(kind: ItemKind, change: str) -> None:
    """GOSSIP-3: there is one form of each statement, so a second id for it cannot be made."""
    read_item(kind, TRUE[kind].raw)
    with pytest.raises(OdfError):
        read_item(kind, CHANGES[change](TRUE[kind].raw))


@pytest.mark.parametrize("shown", ItemKind)
@pytest.mark.parametrize("kind", TRUE)
def test_true_item_that_is_given_out_as_another_kind_is_rejected(kind: ItemKind, shown: ItemKind) -> None:
    """GOSSIP-3, SIG-3: a signature for one purpose is none for another."""
    if kind is shown:
        assert read_item(kind, TRUE[kind].raw).id == TRUE[kind].id
        return
    with pytest.raises(OdfError):
        read_item(shown, TRUE[kind].raw)


@pytest.mark.parametrize("kind", [kind for kind in TRUE if kind is not ItemKind.EQUIVOCATION])
def test_true_item_with_another_signers_key_before_it_is_rejected(kind: ItemKind) -> None:
    """GOSSIP-3: nobody's statement becomes another one's."""
    other = head(OTHER_KEY, 7).raw[:32]
    with pytest.raises(OdfError):
        read_item(kind, other + TRUE[kind].raw[32:])
