"""Items and peer records: what is read, what is rejected, what one item replaces (GOSSIP-1 to GOSSIP-7)."""

import pytest

from odf_gossip_protocol import ItemKind, item_id, read_item
from odf_gossip_protocol.item import MAX_ITEM_BYTES
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.peer_addresses import PeerAddress, _PeerRecord, decode_peer_record, sign_peer
from odf_protocol.signatures import Purpose, sign_document
from odf_protocol.timestamp import Timestamp
from support.gossip_items import NOON_MS, attestation, head, key_events
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, NOON, OTHER_KEY, dataset_of, did_key_of

DAY_S = 86_400
HOME = PeerAddress("https://node.example:8443")


def later(seconds: int) -> Timestamp:
    return Timestamp(NOON.seconds + seconds)


def record_with(**changes: object) -> bytes:
    fields = {
        "version": 1,
        "type": "peer",
        "node": str(did_key_of(NODE_KEY)),
        "addresses": (str(HOME),),
        "time": str(NOON),
        "expires": str(later(DAY_S)),
    }
    payload = encode_canonical(_PeerRecord(**{**fields, **changes}))  # type: ignore[arg-type]
    return sign_document(NODE_KEY, Purpose.PEER_RECORD, payload).to_bytes()


def test_items_say_what_they_are_about_and_until_when() -> None:
    short, long = head(DATASET_KEY, 7, expires_ms=NOON_MS + 1_000), head(DATASET_KEY, 7)
    stated, (event,) = attestation(NODE_KEY, DATASET_KEY), key_events(DATASET_KEY, NEW_KEY)
    assert (short.dataset_id, short.signer, short.rank) == (
        dataset_of(DATASET_KEY),
        did_key_of(DATASET_KEY),
        (7, NOON_MS),
    )
    assert short.expires_ms == NOON_MS + 1_000
    assert long.expires_ms == NOON_MS + 90 * DAY_S * 1000
    assert (stated.dataset_id, stated.signer) == (dataset_of(DATASET_KEY), did_key_of(NODE_KEY))
    assert event.expires_ms is None
    assert len({short.slot, stated.slot, event.slot}) == 3
    assert long.slot == short.slot


def test_proof_is_an_item_of_the_key_that_contradicted_itself() -> None:
    one, other = head(DATASET_KEY, 7, text="a"), head(DATASET_KEY, 7, text="b")
    item = read_item(ItemKind.EQUIVOCATION, prove_equivocation(EquivocationKind.HEADS, one.raw, other.raw).raw)
    assert (item.signer, item.time_ms, item.expires_ms) == (did_key_of(DATASET_KEY), None, None)


def test_id_depends_on_kind_and_bytes() -> None:
    ids = {item_id(kind, raw) for kind in ItemKind for raw in (b"a", b"b")}
    assert len(ids) == 2 * len(ItemKind)


@pytest.mark.parametrize("kind", ItemKind)
def test_bytes_that_are_no_item_are_rejected(kind: ItemKind) -> None:
    for raw in (b"", b"x" * 200, bytes(MAX_ITEM_BYTES + 1), attestation(NODE_KEY, DATASET_KEY).raw[:-1]):
        with pytest.raises((MalformedError, RejectedError)):
            read_item(kind, raw)


def test_item_of_another_kind_is_rejected() -> None:
    with pytest.raises(RejectedError):
        read_item(ItemKind.KEY_EVENT, head(DATASET_KEY, 1).raw)


def test_record_is_read_as_it_was_signed() -> None:
    addresses = (HOME, PeerAddress("http://8.8.8.8"))
    record = sign_peer(NODE_KEY, addresses=addresses, time=NOON, expires=later(7 * DAY_S))
    assert decode_peer_record(record.raw) == record
    assert (record.node, record.addresses) == (did_key_of(NODE_KEY), addresses)
    assert decode_peer_record(record_with()).addresses == (HOME,)


def test_record_without_addresses_is_one_of_a_node_that_only_asks() -> None:
    assert sign_peer(NODE_KEY, addresses=(), time=NOON, expires=later(1)).addresses == ()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"node": str(did_key_of(OTHER_KEY))}, RejectedError),
        ({"expires": str(NOON)}, RejectedError),
        ({"expires": str(later(7 * DAY_S + 1))}, RejectedError),
        ({"addresses": (str(HOME), str(HOME))}, RejectedError),
        ({"addresses": ("http://8.8.8.8/admin",)}, MalformedError),
        ({"addresses": ("file:///etc/passwd",)}, MalformedError),
    ],
)
def test_record_that_breaks_a_rule_is_rejected(changes: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_peer_record(record_with(**changes))


def test_record_that_cannot_be_is_not_signed() -> None:
    with pytest.raises(ValueError, match="GOSSIP-6"):
        sign_peer(NODE_KEY, addresses=(), time=NOON, expires=later(8 * DAY_S))


def test_signature_for_another_purpose_is_none() -> None:
    raw = sign_document(NODE_KEY, Purpose.HEAD, record_with()[96:]).to_bytes()
    with pytest.raises(RejectedError):
        decode_peer_record(raw)
