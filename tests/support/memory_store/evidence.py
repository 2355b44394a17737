"""Replay records, attestations, and how far datasets were verified."""

from collections.abc import Iterator

from odf_node.ports.evidence import Attestation, ReplayRecord, Verified
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from support.memory_store.tables import MemoryPort


class MemoryEvidence(MemoryPort):
    """``EvidenceStore`` in memory."""

    def find_replay_record(self, dataset_id: DatasetId, block_hash: Multihash) -> ReplayRecord | None:
        with self._tables.lock:
            kept = self._tables.datasets.get(dataset_id)
            for number, raw in () if kept is None else kept.replay_records.items():
                if kept is not None and kept.blocks[number].hash == block_hash:
                    return ReplayRecord(dataset_id, number, block_hash, raw)
            return None

    def iter_replay_records(self, dataset_id: DatasetId, *, after: int, upto: int) -> Iterator[tuple[int, bytes]]:
        with self._tables.lock:
            kept = self._tables.datasets.get(dataset_id)
            records = {} if kept is None else kept.replay_records
            return iter([(number, raw) for number, raw in sorted(records.items()) if after < number <= upto])

    def put_attestation(self, attestation: Attestation) -> bool:
        with self._tables.lock:
            return self._tables.keep_attestation(attestation)

    def iter_attestations(self, dataset_id: DatasetId) -> Iterator[Attestation]:
        with self._tables.lock:
            return iter([each for _, each in self._tables.attestations.values() if each.dataset_id == dataset_id])

    def list_attestations_after(self, arrival: int, *, limit: int) -> tuple[tuple[int, bytes], ...]:
        with self._tables.lock:
            newer = [(place, each.raw) for place, each in self._tables.attestations.values() if place > arrival]
        return tuple(newer[:limit])

    def put_verified(self, verified: Verified) -> None:
        with self._tables.lock:
            self._tables.get(verified.dataset_id).verified = verified

    def find_verified(self, dataset_id: DatasetId) -> Verified | None:
        kept = self._tables.datasets.get(dataset_id)
        return None if kept is None else kept.verified
