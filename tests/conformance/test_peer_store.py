"""Peers in the store of a home."""

from dataclasses import replace

import pytest

from odf_node.records.errors import PeerKeyChangedError
from odf_node.records.peers import Peer
from odf_node.store import MetadataStore
from support.store_values import (
    LATER,
    NOON,
    did_key,
)


def test_peer_keeps_its_first_key_and_time(store: MetadataStore) -> None:
    store.put_peer(Peer(url="https://p", node_key=None, first_seen=NOON))
    store.put_peer(Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(5),), first_seen=LATER))
    kept = store.put_peer(
        Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(4), did_key(5)), first_seen=LATER)
    )
    assert kept == Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(5), did_key(4)), first_seen=NOON)
    assert store.find_peer("https://p") == kept
    assert store.list_peers() == (kept,)


@pytest.mark.parametrize("shown", [did_key(2), None], ids=["another-key", "no-key"])
def test_peer_with_another_key_is_rejected_and_stays_as_it_was(store: MetadataStore, shown: object) -> None:
    peer = Peer(url="https://p", node_key=did_key(1), first_seen=NOON)
    store.put_peer(peer)
    with pytest.raises(PeerKeyChangedError):
        store.put_peer(replace(peer, node_key=shown, publisher_keys=(did_key(9),)))  # type: ignore[arg-type]
    assert store.find_peer("https://p") == peer


def test_forgotten_peer_may_come_with_another_key(store: MetadataStore) -> None:
    store.put_peer(Peer(url="https://p", node_key=did_key(1), publisher_keys=(did_key(3),), first_seen=NOON))
    store.delete_peer("https://p")
    peer = Peer(url="https://p", node_key=did_key(2), first_seen=LATER)
    assert store.put_peer(peer) == peer


def test_named_peers_are_those_that_the_operator_named(store: MetadataStore) -> None:
    store.put_peer(Peer(url="https://met", node_key=did_key(1), first_seen=NOON))
    store.name_peer("https://named", NOON)
    store.name_peer("https://met", LATER)
    assert store.list_named_peers() == ("https://met", "https://named")
    met = store.find_peer("https://met")
    assert met is not None
    assert (met.node_key, met.first_seen) == (did_key(1), NOON)
    store.delete_peer("https://met")
    assert store.list_named_peers() == ("https://named",)


def test_records_of_peers_replace_all_others(store: MetadataStore) -> None:
    store.replace_peer_records([b"a", b"b", b"a"])
    assert sorted(store.list_peer_records()) == [b"a", b"b"]
    store.replace_peer_records([b"c"])
    assert store.list_peer_records() == (b"c",)
