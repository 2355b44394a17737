"""Figures of ingests by stage and plug-in."""

from collections.abc import Sequence

from odf_engines.stage_figures import StageFigures, merge_stages
from odf_node.ports.ingests import KEPT_INGESTS, MAX_PLUG_INS, OTHER_PLUG_INS, StageTotal
from odf_protocol.did import DatasetId
from support.memory_store.tables import MemoryPort


class MemoryStages(MemoryPort):
    """``StageStore`` in memory."""

    def note_stages(self, dataset_id: DatasetId, sequence_number: int | None, stages: Sequence[StageFigures]) -> None:
        with self._tables.lock:
            for each in merge_stages(stages, by_position=False):
                self._add(each)
            if sequence_number is not None:
                kept = self._tables.get(dataset_id).stages
                kept[sequence_number] = tuple(stages)
                for number in sorted(kept)[:-KEPT_INGESTS]:
                    del kept[number]

    def find_stages(self, dataset_id: DatasetId, sequence_number: int) -> tuple[StageFigures, ...]:
        kept = self._tables.datasets.get(dataset_id)
        return () if kept is None else kept.stages.get(sequence_number, ())

    def list_stage_totals(self) -> list[StageTotal]:
        with self._tables.lock:
            return [total for _, total in sorted(self._tables.stage_totals.items())]

    def _add(self, figures: StageFigures) -> None:
        totals, plug_in = self._tables.stage_totals, figures.plug_in
        named = sum(bool(name) for _, name in totals)
        if plug_in and (figures.stage, plug_in) not in totals and named >= MAX_PLUG_INS:
            plug_in = OTHER_PLUG_INS
        key = figures.stage, plug_in
        before = totals.get(key)
        totals[key] = StageTotal(
            stage=figures.stage,
            plug_in=plug_in,
            batches=1 + (before.batches if before else 0),
            seconds=figures.seconds + (before.seconds if before else 0.0),
            rows_in=(figures.rows_in or 0) + (before.rows_in if before else 0),
            rows_out=(figures.rows_out or 0) + (before.rows_out if before else 0),
            bad_rows=(figures.bad_rows or 0) + (before.bad_rows if before else 0),
        )
