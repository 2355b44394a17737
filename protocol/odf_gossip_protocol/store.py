"""What a node keeps of what it heard: bounded, without duplicates, and not to be filled by whoever talks most.

Items are of three classes:

- *own*: published here. Never pushed out by others'.
- *of interest*: heads, key events and proofs about a dataset that is held or subscribed to here, and everything said by
  a key that the operator named. Only the keys that speak for these datasets, and named keys, can make such items, so
  strangers cannot make many.
- *in passing*: everything else, kept for others. When there are too many, the address bucket that brought most of them
  loses its oldest. Who floods pushes out the flood.

Source: clauses GOSSIP-11 to GOSSIP-13 and GOSSIP-19 to GOSSIP-22 in ``spec/plug-ins/gossip.md``.
"""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from odf_gossip_protocol.item import Item, ItemKind, read_item
from odf_gossip_protocol.ranges import IdSet
from odf_gossip_protocol.settings import GossipSettings
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.key_events import KeyEvent
from odf_protocol.key_history import MAX_KEY_EVENTS

OWN: Final = ""
"""The introducer of what is published here; no address bucket has this name."""

_MAX_DISPUTES: Final = 16
"""Proofs, and settlements, of one key about one dataset (GOSSIP-11): who lies more often is known well enough."""
_OF_DISPUTES: Final = frozenset({ItemKind.EQUIVOCATION, ItemKind.SETTLEMENT})
_DATED: Final = frozenset({ItemKind.HEAD, ItemKind.ATTESTATION})
"""Kinds of which the later one counts, by the clock of whoever signed."""
_HEADS_REMEMBERED: Final = 8  # guess: heads below the newest that a contradiction can still be found with


class ItemVerdict(StrEnum):
    """What became of an item."""

    NEW = "new"
    KNOWN = "known"
    STALE = "stale"
    """Something newer, or as good, is here in its place."""
    EXPIRED = "expired"
    FUTURE = "future"
    """Dated ahead of this node's clock; it may come again."""
    FOREIGN = "foreign"
    """By a key that, as far as is known here, does not speak for the dataset; it may come again."""
    CROWDED = "crowded"
    """The store is full of what counts more."""


@dataclass(frozen=True, slots=True)
class Interests:
    """What the operator of this node cares for.

    Attributes:
        datasets: Held or subscribed to.
        signers: Named by a policy, such as auditors.
    """

    datasets: frozenset[DatasetId] = frozenset()
    signers: frozenset[DidKey] = frozenset()

    def cover(self, item: Item) -> bool:
        """Say whether an item is of interest."""
        if item.signer in self.signers:
            return True
        return item.kind is not ItemKind.ATTESTATION and item.dataset_id in self.datasets


@dataclass(frozen=True, slots=True)
class Admission:
    """What came of offering an item.

    Attributes:
        verdict: Whether it is kept.
        removed: Ids that went for it.
        proofs: Contradictions that it completed; they are not in the store yet.
        is_older_head: A head of interest below the one that is kept: it may contradict blocks (GOSSIP-13).
    """

    verdict: ItemVerdict
    removed: tuple[bytes, ...] = ()
    proofs: tuple[Item, ...] = ()
    is_older_head: bool = False


@dataclass(slots=True)
class _Kept:
    item: Item
    introducer: str
    in_passing: bool
    older_heads: dict[int, Item] = field(default_factory=dict)


@dataclass(slots=True)
class _KeyLog:
    """The kept key events of a dataset: how many of each index, and at which index keys are named."""

    counts: Counter[int] = field(default_factory=Counter)
    named: dict[DidKey, int] = field(default_factory=dict)
    _namings: Counter[DidKey] = field(default_factory=Counter)

    def add(self, event: KeyEvent) -> None:
        self.counts[event.index] += 1
        for key in event.named_keys:
            self.named[key] = event.index
            self._namings[key] += 1

    def remove(self, event: KeyEvent) -> None:
        self.counts[event.index] -= 1
        if not self.counts[event.index]:
            del self.counts[event.index]
        for key in event.named_keys:
            self._namings[key] -= 1
            if not self._namings[key]:
                del self._namings[key], self.named[key]


_NO_LOG: Final = _KeyLog()


class ItemStore:
    """The items of one node. Every method costs at most the logarithm of what is kept, but for memory copies."""

    def __init__(self, settings: GossipSettings) -> None:
        self.ids = IdSet()
        self._settings = settings
        self._interests = Interests()
        self._kept: dict[bytes, _Kept] = {}
        self._slots: dict[tuple[object, ...], bytes] = {}
        self._shares: dict[str, OrderedDict[bytes, None]] = {}
        self.passing_bytes = 0
        self._passing_items = 0
        self._ends: list[tuple[int, bytes]] = []
        self._forgotten: OrderedDict[bytes, None] = OrderedDict()
        self._expired_ms = 0
        self._logs: dict[DatasetId, _KeyLog] = {}
        self._disputes: dict[tuple[ItemKind, DatasetId, DidKey], int] = {}
        self._of_signer: dict[DidKey, int] = {}
        self._older: dict[bytes, Item] = {}
        """Heads of interest below those that are kept: whoever asked while they were kept may still have them."""

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._kept

    def find(self, id_: bytes) -> Item | None:
        """Return an item, None where it is not kept; also a head of interest that a newer one has just replaced."""
        kept = self._kept.get(id_)
        return self._older.get(id_) if kept is None else kept.item

    def introducer_of(self, id_: bytes) -> str:
        """Return the address bucket that brought an item; that of what is published here where it is not kept."""
        kept = self._kept.get(id_)
        return OWN if kept is None else kept.introducer

    def iter_items(self) -> Iterator[Item]:
        """Yield everything that is kept, in order of arrival."""
        return (kept.item for kept in list(self._kept.values()))

    def is_wanted(self, id_: bytes) -> bool:
        """Say whether an id is worth asking for: neither kept nor known to be of no use."""
        return id_ not in self._kept and id_ not in self._forgotten

    def set_interests(self, interests: Interests) -> None:
        """Change what is of interest; what is kept changes its class, nothing is dropped."""
        self._interests = interests
        for kept in self._kept.values():
            in_passing = self._is_in_passing(kept.item, kept.introducer)
            if in_passing != kept.in_passing:
                self._count(kept, -1)
                kept.in_passing = in_passing
                self._count(kept, 1)

    def speaks(self, dataset_id: DatasetId, signer: DidKey) -> bool:
        """Say whether a key has spoken for a dataset, as far as the key events kept here say (GOSSIP-12)."""
        log = self._logs.get(dataset_id)
        return signer.public_key == dataset_id.public_key or (log is not None and signer in log.named)

    def judge(self, item: Item, now_ms: int) -> ItemVerdict:
        """Say what ``admit`` would find, its limits of space aside; changes nothing."""
        if item.id in self._kept:
            return ItemVerdict.KNOWN
        if item.expires_ms is not None and item.expires_ms <= now_ms:
            return ItemVerdict.EXPIRED
        if item.time_ms is not None and item.time_ms > now_ms + self._settings.future_ms:
            return ItemVerdict.FUTURE
        if not self._may_report(item):
            return ItemVerdict.FOREIGN
        held = self._find_in_slot(item)
        if held is not None and item.rank <= held.item.rank and not self._gives_way(held.item, item, now_ms):
            return ItemVerdict.STALE
        if self._disputes.get((item.kind, item.dataset_id, item.signer), 0) >= _MAX_DISPUTES:
            return ItemVerdict.STALE
        return ItemVerdict.NEW

    def admit(self, item: Item, introducer: str, now_ms: int) -> Admission:
        """Keep an item if it has a place here.

        Args:
            item: A verified one.
            introducer: Address bucket of who brought it; ``OWN`` for what is published here.
            now_ms: This node's clock, in milliseconds since 1970.
        """
        verdict = self.judge(item, now_ms)
        if verdict in {ItemVerdict.KNOWN, ItemVerdict.FUTURE, ItemVerdict.FOREIGN}:
            return Admission(verdict)
        held = self._find_in_slot(item)
        proofs = () if held is None else self._find_contradiction(held, item)
        if verdict is not ItemVerdict.NEW:
            self._forget(item.id)
            is_older = item.kind is ItemKind.HEAD and held is not None and item.rank[0] < held.item.rank[0]
            return Admission(verdict, proofs=proofs, is_older_head=is_older and self._interests.cover(item))
        removed: list[bytes] = []
        older: dict[int, Item] = {}
        if held is not None:
            older = self._older_heads(held)
            removed.append(self._remove(held.item.id))
        kept = _Kept(item, introducer, self._is_in_passing(item, introducer), older)
        self._insert(kept)
        removed += self._make_room()
        if item.id not in self._kept:
            return Admission(ItemVerdict.CROWDED, tuple(id_ for id_ in removed if id_ != item.id), proofs)
        return Admission(ItemVerdict.NEW, tuple(removed), proofs)

    def expire(self, now_ms: int) -> list[bytes]:
        """Drop what has expired and return the ids."""
        if now_ms < self._expired_ms - self._settings.future_ms:
            self._forgotten.clear()  # the clock was ahead: what ran out by it may be asked for again
        self._expired_ms = now_ms
        removed = []
        while self._ends and self._ends[0][0] <= now_ms:
            _, id_ = heapq.heappop(self._ends)
            if id_ in self._kept:
                removed.append(self._remove(id_))
        return removed

    def _gives_way(self, held: Item, item: Item, now_ms: int) -> bool:
        """Say whether what is kept was dated by a clock that was ahead, and says the same as what comes now."""
        is_ahead = held.time_ms is not None and held.time_ms > now_ms + self._settings.future_ms
        return is_ahead and held.kind in _DATED and held.rank[:-1] == item.rank[:-1]

    def _may_report(self, item: Item) -> bool:
        """Say whether an item's signer has any business to say it, as far as is known here (GOSSIP-12)."""
        statement = item.statement
        if isinstance(statement, KeyEvent):
            if not self.speaks(item.dataset_id, item.signer) or statement.index >= MAX_KEY_EVENTS:
                return False
            log = self._logs.get(item.dataset_id, _NO_LOG)
            in_order = statement.index == 0 or statement.index - 1 in log.counts
            return in_order and all(
                log.named.get(key, statement.index) == statement.index for key in statement.named_keys
            )
        return item.kind is ItemKind.ATTESTATION or self.speaks(item.dataset_id, item.signer)

    def _is_in_passing(self, item: Item, introducer: str) -> bool:
        if introducer == OWN:
            return False
        return not self._interests.cover(item) or self._of_signer.get(item.signer, 0) >= self._settings.signer_items

    def _find_in_slot(self, item: Item) -> _Kept | None:
        id_ = self._slots.get(item.slot)
        return None if id_ is None else self._kept[id_]

    def _insert(self, kept: _Kept) -> None:
        item = kept.item
        self._kept[item.id] = kept
        self._older |= {older.id: older for older in kept.older_heads.values()}
        self._slots[item.slot] = item.id
        self.ids.add(item.id)
        self._count(kept, 1)
        if item.expires_ms is not None:
            heapq.heappush(self._ends, (item.expires_ms, item.id))
            self._shrink_ends()
        self._count_dispute(item, 1)
        if isinstance(item.statement, KeyEvent):
            self._logs.setdefault(item.dataset_id, _KeyLog()).add(item.statement)

    def _remove(self, id_: bytes) -> bytes:
        kept = self._kept.pop(id_)
        for older in kept.older_heads.values():
            self._older.pop(older.id, None)
        del self._slots[kept.item.slot]
        self.ids.remove(id_)
        self._count(kept, -1)
        self._count_dispute(kept.item, -1)
        if isinstance(kept.item.statement, KeyEvent):
            log = self._logs[kept.item.dataset_id]
            log.remove(kept.item.statement)
            if not log.counts:
                del self._logs[kept.item.dataset_id]
        self._forget(id_)
        return id_

    def _count(self, kept: _Kept, sign: int) -> None:
        if not kept.in_passing:
            count = self._of_signer.pop(kept.item.signer, 0) + sign
            if count:
                self._of_signer[kept.item.signer] = count
            return
        self.passing_bytes += sign * len(kept.item.raw)
        self._passing_items += sign
        share = self._shares.setdefault(kept.introducer, OrderedDict())
        if sign > 0:
            share[kept.item.id] = None
        else:
            del share[kept.item.id]
            if not share:
                del self._shares[kept.introducer]

    def _count_dispute(self, item: Item, sign: int) -> None:
        if item.kind in _OF_DISPUTES:
            key = (item.kind, item.dataset_id, item.signer)
            count = self._disputes.pop(key, 0) + sign
            if count:
                self._disputes[key] = count

    def _make_room(self) -> list[bytes]:
        removed = []
        limits = self._settings
        while self._passing_items > limits.max_items or self.passing_bytes > limits.max_item_bytes:
            # The bucket that brought most loses its oldest; with equal shares the name decides, the same everywhere.
            share = max(self._shares, key=lambda name: (len(self._shares[name]), name))
            removed.append(self._remove(next(iter(self._shares[share]))))
        return removed

    def _forget(self, id_: bytes) -> None:
        self._forgotten[id_] = None
        if len(self._forgotten) > self._settings.max_forgotten:
            self._forgotten.popitem(last=False)

    def _shrink_ends(self) -> None:
        """Keep the queue of ends from growing with items that were replaced before their end."""
        if len(self._ends) > 2 * len(self._kept) + 64:
            self._ends = [
                (kept.item.expires_ms, id_) for id_, kept in self._kept.items() if kept.item.expires_ms is not None
            ]
            heapq.heapify(self._ends)

    def _older_heads(self, held: _Kept) -> dict[int, Item]:
        if held.item.kind is not ItemKind.HEAD or not self._interests.cover(held.item):
            return {}
        older = {**held.older_heads, held.item.rank[0]: held.item}
        return {number: older[number] for number in sorted(older)[-_HEADS_REMEMBERED:]}

    def _find_contradiction(self, held: _Kept, item: Item) -> tuple[Item, ...]:
        """Prove that the signer contradicted itself, where two statements that were here show it (GOSSIP-13)."""
        match item.kind:
            case ItemKind.HEAD:
                kind = EquivocationKind.HEADS
                same_number = held.item if held.item.rank[0] == item.rank[0] else held.older_heads.get(item.rank[0])
            case ItemKind.KEY_EVENT:
                kind, same_number = EquivocationKind.KEY_EVENTS, held.item
            case _:
                return ()
        if same_number is None or same_number.raw == item.raw:
            return ()
        try:
            proof = prove_equivocation(kind, same_number.raw, item.raw)
            return (read_item(ItemKind.EQUIVOCATION, proof.raw),)
        except (MalformedError, RejectedError):
            return ()  # the same block, signed twice
