"""What ingests set aside, given to the sinks that manifests declare: entry by entry, behind the commit.

Quarantine is the outbox: an entry is in it with the block, or without one, before any sink hears of it (QUAR-1). Of
each sink is noted which entry it had last, so what waits follows from that, and nobody waits for a sink.

Source: clauses SINK-1 to SINK-4 in ``spec/plug-ins/corrections.md``.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from odf_engines.validation.contract import ParameterError
from odf_engines.validation.plug_ins import BrokenPlugInError, load_plug_in, read_parameters
from odf_node.adapters.request_signing import SignedPosts
from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.datasets.quarantined_rows import KeptRow, QuarantineReader
from odf_node.home import Home
from odf_node.home_folder import name_sinks
from odf_node.ingest.declared_plug_ins import DeclaredSink
from odf_node.ingest.ingest_rules import find_rules
from odf_node.ports.notices import MAX_ATTEMPTS, SignedPosting, wait_after_s
from odf_node.ports.sinks import BadRows, Sink, SinkContext, Told
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import QuarantineFile
from odf_node.sink_notes import held_notes, read_notes
from odf_node.store import MetadataStore
from odf_protocol.errors import OdfError

_OWN: Final = "ODF_NODE_"
_NOTHING_TO_GIVE: Final = "Quarantine"
"""The sink that has every row by itself."""
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of an entry at a sink: its kind, how it went, and why in a few words."""

    sink: str
    entry: int
    reported: Told
    why: str


@dataclass(slots=True)
class _Patience:
    attempts: int = 0
    due_s: float = 0.0


@dataclass
class BadRowSinks:
    """Gives entries to sinks; used by one thread.

    Attributes:
        home: What it works on.
        posts: Sends what is signed, see ``SinkContext``.
        environment: Of the node.
    """

    home: Home
    posts: SignedPosting
    environment: Mapping[str, str]
    _patience: dict[_Key, _Patience] = field(default_factory=dict)

    def deliver(self, record: DatasetRecord, now_s: float | None = None) -> Iterator[Delivery]:
        """Give the sinks of a dataset what they did not have yet, and say how each went.

        Args:
            record: The dataset.
            now_s: Of a clock that only goes forward: sinks that did not take something are left alone for a while, and
                where one failed too often all that waits there is dropped; None: each is asked once.
        """
        declared = find_rules(load_view(self.home.store, record.id).attachments).sinks
        entries = [*self.home.store.iter_quarantine(record.id)] if declared else []
        if not entries:
            return
        with held_notes(self.home.folder.cache) as notes:
            for each in declared:
                key = _key_of(record, each)
                patience = self._patience.setdefault(key, _Patience())
                if now_s is not None and patience.due_s > now_s:
                    continue
                taken = notes.setdefault(key[0], {})
                last = taken.get(key[1], 0)
                for entry in entries:
                    if entry.id > last:
                        delivery = self._give(each, record, entry)
                        if delivery.reported is Told.UNAVAILABLE and now_s is not None:
                            delivery = _waited(delivery, patience, now_s)
                        is_dropped = delivery.reported is Told.DROPPED
                        if delivery.reported is not Told.UNAVAILABLE:
                            taken[key[1]] = entries[-1].id if is_dropped else entry.id
                            patience.attempts, patience.due_s = 0, 0.0
                        yield delivery
                        if is_dropped or delivery.reported is Told.UNAVAILABLE:
                            break

    def waits(self, record: DatasetRecord) -> bool:
        """Say whether a sink of the dataset is left alone for a while."""
        return any(key[0] == str(record.id) and each.attempts for key, each in self._patience.items())

    def _give(self, declared: DeclaredSink, record: DatasetRecord, entry: QuarantineFile) -> Delivery:
        try:
            sink = self._make(declared, record)
            reported, why = sink.deliver(self._bad_rows(record, entry))
            return Delivery(declared.name, entry.id, Told(reported), str(why)[:200])
        except (ParameterError, BrokenPlugInError, OdfError) as error:
            return Delivery(declared.name, entry.id, Told.UNAVAILABLE, str(error)[:200])
        except Exception as error:  # noqa: BLE001 - code of others
            return Delivery(declared.name, entry.id, Told.UNAVAILABLE, type(error).__name__)

    def _make(self, declared: DeclaredSink, record: DatasetRecord) -> Sink:
        kind = load_plug_in(Sink, declared.name, *declared.get_place())
        environment = {name: value for name, value in self.environment.items() if not name.startswith(_OWN)}
        context = SinkContext(
            folder=self.home.folder.sinks / name_sinks(record.id), environment=environment, send=self.posts.send
        )
        made: Sink = kind(read_parameters(kind, declared.parameters), context)
        return made

    def _bad_rows(self, record: DatasetRecord, entry: QuarantineFile) -> BadRows:
        reader = QuarantineReader(self.home.store, self.home.objects)
        return BadRows(
            node=self.posts.node_id,
            dataset=record.name,
            dataset_id=str(record.id),
            entry=entry.id,
            source=entry.source,
            set_aside_at=str(entry.created_at),
            row_count=entry.row_count,
            why=None if entry.batch is None else entry.batch.why,
            iter_rows=lambda: map(_row_to_json, reader.iter_rows(record, entries=(entry.id,))),
        )


def open_sinks(node: Node) -> BadRowSinks:
    """Make what delivers for a node."""
    return BadRowSinks(node.home, SignedPosts(node.keys, node.clock), os.environ)


def list_waiting(store: MetadataStore, cache: Path, record: DatasetRecord) -> list[tuple[str, int]]:
    """Say which sinks of a dataset did not have how many entries yet."""
    declared = find_rules(load_view(store, record.id).attachments).sinks
    taken = read_notes(cache).get(str(record.id), {}) if declared else {}
    numbers = [entry.id for entry in store.iter_quarantine(record.id)] if declared else []
    lasts = [(each.name, taken.get(_key_of(record, each)[1], 0)) for each in declared if each.name != _NOTHING_TO_GIVE]
    counts = [(name, sum(number > last for number in numbers)) for name, last in lasts]
    return [(name, count) for name, count in counts if count]


def _key_of(record: DatasetRecord, declared: DeclaredSink) -> _Key:
    return str(record.id), json.dumps([declared.name, declared.parameters], sort_keys=True)


def _waited(delivery: Delivery, patience: _Patience, now_s: float) -> Delivery:
    patience.attempts += 1
    if patience.attempts < MAX_ATTEMPTS:
        patience.due_s = now_s + wait_after_s(patience.attempts)
        return delivery
    return Delivery(delivery.sink, delivery.entry, Told.DROPPED, delivery.why)


def _row_to_json(row: KeptRow) -> dict[str, Any]:
    return {
        "row": str(row.id),
        "record": row.record,
        "line": row.line,
        "stage": row.stage,
        "columns": dict(row.given),
        "original": row.original,
        "errors": row.errors,
    }
