"""What there is to know about a dataset's keys: who speaks, since when, which blocks a stolen key signed (KEY-22)."""

from dataclasses import dataclass
from typing import Any, Final

from odf_node.keys.logs import KeyLogs
from odf_node.ports.keys import KeyStore
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.key_history import KeyHistory, Recovery

MAX_LISTED_BLOCKS: Final = 1000
"""Blocks of one window that are listed one by one.  # guess: what a person looks through"""


@dataclass(frozen=True, slots=True)
class KeyReports:
    """Describes keys, from one store."""

    store: MetadataStore

    def describe(self, record: DatasetRecord, keys: KeyStore | None = None) -> dict[str, Any]:
        """Describe the keys of a dataset; with ``keys``, also which of them are in this home."""
        logs = KeyLogs(self.store)
        history = logs.get_history(record.id)
        periods = []
        for period in history.periods:
            end = history.find_end(period.key)
            theft = history.find_theft(period.key)
            periods.append(
                {
                    "key": str(period.key),
                    "firstBlock": period.first_sequence_number,
                    "lastBlock": None if end is None else end - 1,
                    "stolenFrom": None if theft is None else theft.stolen_from,
                    "isHere": keys is not None and keys.find_signing_key(period.key) is not None,
                }
            )
        disowned = logs.find_disowned(record)
        return {
            "dataset": record.name,
            "id": str(record.id),
            "key": str(history.current_key),
            "recoveryKey": None if history.recovery_key is None else str(history.recovery_key),
            "keys": periods,
            "events": [
                {"index": event.index, "change": event.change.value, "says": event.explain(), "at": str(event.time)}
                for event in history.events
            ],
            "outranked": [
                {"index": event.index, "by": str(event.signer), "says": event.explain(), "at": str(event.time)}
                for event in logs.list_outranked(record.id)
            ],
            "stolen": [self._describe_window(record, each) for each in history.recoveries],
            "disownedFrom": disowned,
        }

    def list_doubts(self, record: DatasetRecord) -> list[str]:
        """Say in sentences what whoever relies on a dataset must know of its keys; nothing where none was stolen."""
        logs = KeyLogs(self.store)
        doubts = list_key_doubts(logs.get_history(record.id), record)
        disowned = logs.find_disowned(record)
        if disowned is not None:
            doubts.append(
                f"block {disowned} held here is not of the history that the owner keeps: 'odf-node pull --force' takes "
                "that one"
            )
        return doubts

    def _describe_window(self, record: DatasetRecord, recovery: Recovery) -> dict[str, Any]:
        upto = min(recovery.window.stop - 1, record.head.sequence_number)
        first = recovery.window.start
        blocks = (
            [
                {
                    "block": stored.sequence_number,
                    "hash": str(stored.hash),
                    "event": type(decode_block(stored.raw, expected_hash=stored.hash).event).__name__,
                }
                for stored in self.store.iter_blocks(
                    record.id, after=first - 1, upto=min(upto, first + MAX_LISTED_BLOCKS - 1)
                )
            ]
            if upto >= first
            else []
        )
        return {
            "keys": [str(key) for key in recovery.stolen_keys],
            "from": recovery.stolen_from,
            "until": recovery.first_sequence_number - 1,
            "keeps": str(recovery.keeps),
            "blocks": blocks,
        }


def list_key_doubts(history: KeyHistory, record: DatasetRecord) -> list[str]:
    """Say which blocks held here a stolen key signed."""
    doubts = []
    for each in history.recoveries:
        last = min(each.window.stop - 1, record.head.sequence_number)
        if last >= each.stolen_from:
            doubts.append(
                f"blocks {each.stolen_from} to {last} were signed by a key that its owner later declared stolen; they "
                f"are kept, as the owner says the history leads to block {last} ({each.keeps.short})"
            )
    return doubts
