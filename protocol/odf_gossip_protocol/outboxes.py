"""What waits to be sent to each link: bounded, most urgent first, one push on its way at a time.

What a node sends is shared in turns among those who introduced it, and a push holds fewer items than a receiver takes
from one sender: a flood that comes in through one neighbour does not delay the news of another.

Source: clauses GOSSIP-37 and GOSSIP-38 in ``spec/plug-ins/gossip.md``.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Final

from odf_gossip_protocol.item import Item, ItemKind
from odf_gossip_protocol.messages import ItemMessage, Push
from odf_gossip_protocol.settings import GossipSettings
from odf_gossip_protocol.store import ItemStore

_URGENCY: Final = {kind: number for number, kind in enumerate(ItemKind)}


@dataclass(slots=True)
class _Outbox:
    """Ids with the number of attempts so far: proofs, and the rest by who introduced it."""

    proofs: OrderedDict[bytes, int] = field(default_factory=OrderedDict)
    waiting: OrderedDict[str, OrderedDict[bytes, int]] = field(default_factory=OrderedDict)
    count: int = 0
    in_flight: dict[bytes, int] = field(default_factory=dict)

    def put(self, introducer: str, id_: bytes, tries: int, most: int) -> None:
        queue = self.waiting.setdefault(introducer, OrderedDict())
        self.count += id_ not in queue
        queue[id_] = tries
        if self.count > most:
            longest = max(self.waiting, key=lambda name: (len(self.waiting[name]), name))
            self._pop(longest, last=False)

    def take(self) -> tuple[bytes, int] | None:
        """Take the newest of whose turn it is: who has much to say has no more turns than who has little."""
        if not self.waiting:
            return None
        introducer = next(iter(self.waiting))
        self.waiting.move_to_end(introducer)
        return self._pop(introducer, last=True)

    def _pop(self, introducer: str, *, last: bool) -> tuple[bytes, int]:
        queue = self.waiting[introducer]
        self.count -= 1
        taken = queue.popitem(last=last)
        if not queue:
            del self.waiting[introducer]
        return taken


class Outboxes:
    """The outboxes of one node, by address."""

    def __init__(self, settings: GossipSettings, store: ItemStore) -> None:
        self._settings = settings
        self._store = store
        self._boxes: dict[str, _Outbox] = {}

    def list_addresses(self) -> list[str]:
        """Return for whom there is an outbox."""
        return list(self._boxes)

    def put(self, address: str, item: Item, *, tries: int = 0) -> None:
        """Let an item wait; where there is no room, whoever introduced most waits for a reconciliation instead."""
        box = self._boxes.setdefault(address, _Outbox())
        if item.kind is ItemKind.EQUIVOCATION:
            box.proofs[item.id] = tries
            if len(box.proofs) > self._settings.outbox_items:
                box.proofs.popitem(last=False)
        else:
            box.put(self._store.introducer_of(item.id), item.id, tries, self._settings.outbox_items)

    def put_once(self, address: str, items: Iterable[Item]) -> None:
        """Let items wait that a reconciliation showed to be missing; it will show them again if they do not arrive."""
        for item in items:
            self.put(address, item, tries=self._settings.push_attempts - 1)

    def take_push(self, address: str) -> Push | None:
        """Return what is to be sent to a peer now; None while a push is on its way, or nothing waits."""
        box = self._boxes.get(address)
        if box is None or box.in_flight:
            return None
        chosen: list[Item] = []
        size_bytes = 0
        while len(chosen) < self._settings.push_items and size_bytes < self._settings.push_bytes:
            taken = box.proofs.popitem(last=False) if box.proofs else box.take()
            if taken is None:
                break
            id_, tries = taken
            item = self._store.find(id_)
            if item is None:
                continue  # replaced or pushed out since
            if chosen and size_bytes + len(item.raw) > self._settings.push_bytes:
                self.put(address, item, tries=tries)
                break
            chosen.append(item)
            size_bytes += len(item.raw)
            box.in_flight[id_] = tries + 1
        chosen.sort(key=lambda item: _URGENCY[item.kind])
        return Push(items=tuple(map(ItemMessage.of, chosen))) if chosen else None

    def arrived(self, address: str) -> None:
        """Note that the push on its way was read."""
        if address in self._boxes:
            self._boxes[address].in_flight.clear()

    def failed(self, address: str) -> None:
        """Note that the push on its way got no reply; its items wait again unless they were tried often enough."""
        box = self._boxes.get(address)
        if box is None:
            return
        again = {id_: tries for id_, tries in box.in_flight.items() if tries < self._settings.push_attempts}
        box.in_flight.clear()
        for id_, tries in again.items():
            item = self._store.find(id_)
            if item is not None:
                self.put(address, item, tries=tries)

    def keep(self, addresses: Container[str]) -> None:
        """Forget what waits for anybody else."""
        for address in [address for address in self._boxes if address not in addresses]:
            del self._boxes[address]
