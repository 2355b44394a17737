"""Gossip: how small signed statements reach every node, although nobody is in charge and some lie.

Read ``item`` for what travels, ``machine`` for how, ``peers`` and ``links`` for between whom, ``store`` for what is
kept. Nothing here does I/O; ``GossipMachine.handle`` takes events and the time and returns effects.

Source: ``spec/plug-ins/gossip.md``.
"""

from odf_gossip_protocol.effects import (
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
from odf_gossip_protocol.item import Item, ItemKind, item_id, read_item
from odf_gossip_protocol.machine import GossipMachine
from odf_gossip_protocol.messages import decode_reply, decode_request, encode_gossip
from odf_gossip_protocol.peers import Randomness
from odf_gossip_protocol.settings import GossipSettings
from odf_gossip_protocol.store import Interests

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
    "decode_reply",
    "decode_request",
    "encode_gossip",
    "item_id",
    "read_item",
]
