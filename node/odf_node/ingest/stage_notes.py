"""Figures of the stages of an ingest on their way to those who operate the node, whether it made a block or failed.

Source: clauses STAGE-4 and STAGE-5 in ``spec/observing.md``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from odf_engines.stage_figures import StageClock, StageFigures
from odf_node.ports import DatasetRecord
from odf_node.ports.observing import Run
from odf_node.ports.stages import StageStore
from odf_protocol.errors import OdfError


def note_stages(
    store: StageStore, record: DatasetRecord, sequence_number: int | None, stages: Sequence[StageFigures]
) -> None:
    """Keep figures, beside a block where there is one."""
    # Behind the commit, and for people: whoever reads the figures misses one batch, and nothing else does.
    with suppress(OdfError):
        store.note_stages(record.id, sequence_number, stages)


@contextmanager
def noting_failure(
    store: StageStore, record: DatasetRecord, clock: StageClock, run: Run, *, is_rehearsal: bool
) -> Iterator[None]:
    """Keep what the stages did of an ingest that fails while the block runs; of a rehearsal nothing.

    Args:
        store: Where.
        record: The dataset.
        clock: Has what was measured on this side, where the run has no figures yet.
        run: What is observed; it gets them, too.
        is_rehearsal: Nothing is kept.
    """
    try:
        yield
    except OdfError:
        run.stages = run.stages or clock.figures
        if not is_rehearsal:
            note_stages(store, record, None, run.stages)
        raise
