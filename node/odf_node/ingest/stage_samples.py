"""A few rows before and after each stage of an ingest, for a person who rehearses it.

The engines that run the stages take them as they go by, so nothing is read or computed for it once more.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_engines.contract import IngestResponse
from odf_engines.row_samples import MOST_SAMPLE_ROWS, SampledStage

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Stage", "StageSample", "sample_stages"]


class Stage(StrEnum):
    """Behind which stage rows stand, in the order of the pipeline."""

    READ = "read"
    CONVERTED = "converted"
    QUERIED = "queried"
    WRITTEN = "written"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class StageSample:
    """The first rows behind a stage.

    Attributes:
        stage: The stage.
        rows: Of each its columns, as JSON has them; of a refused one its record, line, what was sent, and the errors.
    """

    stage: Stage
    rows: tuple[dict[str, Any], ...]


def sample_stages(response: IngestResponse) -> tuple[StageSample, ...]:
    """Show rows behind each stage that there is, as they would be written, and those that would be refused."""
    told = ((Stage(stage.value), response.samples.get(stage)) for stage in SampledStage)
    samples = [StageSample(stage, tuple(_iter_rows(table.to_batches()))) for stage, table in told if table is not None]
    if response.data_path is not None:
        samples.append(StageSample(Stage.WRITTEN, _first_rows(response.data_path)))
    if response.quarantine_path is not None:
        names = ("record", "line", "original", "errors")
        samples.append(StageSample(Stage.REFUSED, _first_rows(response.quarantine_path, names)))
    return tuple(samples)


def _first_rows(path: Path, names: tuple[str, ...] | None = None) -> tuple[dict[str, Any], ...]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(batch_size=MOST_SAMPLE_ROWS, columns=names and [*names])
        return tuple(_iter_rows([first for first in (next(batches, None),) if first is not None]))


def _iter_rows(batches: "Sequence[pa.RecordBatch]") -> Iterator[dict[str, Any]]:
    from odf_protocol.cell_values import cell_value

    for batch in batches:
        for index in range(batch.num_rows):
            named = zip(batch.schema.names, batch.columns, strict=True)
            yield {name: cell_value(column[index]) for name, column in named}
