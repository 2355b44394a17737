"""Gossip: how small signed statements reach every node, although nobody is in charge and some lie.

Read ``item`` for what travels, ``machine`` for how, ``peers`` and ``links`` for between whom, ``store`` for what is
kept. Nothing here does I/O; ``GossipMachine.handle`` takes events and the time and returns effects.

Source: ``spec/plug-ins/gossip.md``.
"""

from odf_protocol.gossip.addresses import PeerAddress, PeerRecord, bucket_of_ip, decode_peer_record, sign_peer
from odf_protocol.gossip.effects import (
    Accept,
    Effect,
    Event,
    Failed,
    Forget,
    Notify,
    Publish,
    Received,
    Reject,
    Replied,
    Respond,
    Restore,
    Send,
    SetInterests,
    SetPinned,
    SetRecord,
    Tick,
)
from odf_protocol.gossip.item import Item, ItemKind, item_id, read_item
from odf_protocol.gossip.machine import GossipMachine
from odf_protocol.gossip.messages import decode_reply, decode_request, encode_gossip
from odf_protocol.gossip.peers import Randomness
from odf_protocol.gossip.settings import GossipSettings
from odf_protocol.gossip.store import Interests

__all__ = [
    "Accept",
    "Effect",
    "Event",
    "Failed",
    "Forget",
    "GossipMachine",
    "GossipSettings",
    "Interests",
    "Item",
    "ItemKind",
    "Notify",
    "PeerAddress",
    "PeerRecord",
    "Publish",
    "Randomness",
    "Received",
    "Reject",
    "Replied",
    "Respond",
    "Restore",
    "Send",
    "SetInterests",
    "SetPinned",
    "SetRecord",
    "Tick",
    "bucket_of_ip",
    "decode_peer_record",
    "decode_reply",
    "decode_request",
    "encode_gossip",
    "item_id",
    "read_item",
    "sign_peer",
]
