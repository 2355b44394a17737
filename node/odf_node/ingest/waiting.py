"""Batches of which nothing was taken: kept whole until a person or the source sends them again.

Source: clauses QUAR-2 and QUAR-3 in ``spec/quarantine.md``.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from odf_engines.contract import IngestResponse
from odf_engines.ingest.quarantine import write_no_rows
from odf_node.datasets.writer import StagedOutputs
from odf_node.home import Home
from odf_node.ingest.batch import Batch, Root, entry_of
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import Fate, SettledRows, WaitingBatch
from odf_protocol.multihash import Multihash


@dataclass(frozen=True, slots=True)
class WaitingBatches:
    """Keeps them; ``workspace`` is a folder for a file that is then copied."""

    home: Home
    workspace: Path

    def list_files(self, record: DatasetRecord, settlement: SettledRows | None) -> list[Multihash]:
        """List the objects with waiting batches that a settlement makes superfluous."""
        if settlement is None or not settlement.batches:
            return []
        waiting = (each for each in self.home.store.iter_quarantine(record.id) if each.id in settlement.batches)
        return [each.batch.file for each in waiting if each.batch is not None and each.batch.file is not None]

    def settle_twins(self, record: DatasetRecord, batch: Batch) -> Batch:
        """Settle waiting batches of the same bytes with this one: the source gave it again, or a person sent it."""
        waiting = [each for each in self.home.store.iter_quarantine(record.id) if each.batch and each.batch.file]
        if not waiting or batch.settlement is not None:
            return batch
        with self.home.objects.stage_copy(batch.path) as copy:
            twins = tuple(each.id for each in waiting if each.batch and each.batch.file == copy.hash)
        return replace(batch, settlement=SettledRows(fate=Fate.RESENT, batches=twins)) if twins else batch

    def keep(self, root: Root, batch: Batch, response: IngestResponse, why: str) -> None:
        """Keep a batch with its bad rows; the same again adds nothing."""
        with ExitStack() as stack:
            outputs = StagedOutputs(self.home.objects, stack)
            waiting = WaitingBatch(
                file=outputs.stage(batch.path).hash,
                why=why,
                event_time=batch.event_time,
                new_state=batch.new_state,
                known_state=root.view.source_state,
            )
            bad_rows, row_count = response.quarantine_path, response.quarantined_rows
            if bad_rows is None:
                bad_rows, row_count = self._write_no_rows(), 0
            entry = entry_of(root, batch, outputs.stage(bad_rows).hash, row_count, None)
            for known in self.home.store.iter_quarantine(root.record.id):
                is_same = known.batch is not None and (known.batch.file, known.batch.why) == (waiting.file, why)
                if is_same and known.object_hash == entry.object_hash:
                    return
            for object_hash, staged in outputs.staged.items():
                self.home.objects.put(staged, object_hash)
            self.home.store.put_quarantine(replace(entry, batch=waiting))

    def _write_no_rows(self) -> Path:
        self.workspace.mkdir(parents=True, exist_ok=True)
        path = self.workspace / "no-bad-rows.parquet"
        write_no_rows(path)
        return path
