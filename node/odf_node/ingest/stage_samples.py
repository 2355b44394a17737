"""A few rows before and after each stage of an ingest, for a person who rehearses it.

Stages are run once more for it, up to where they end, by the engines that run them: what is shown is what they gave.
What is read is shown of the first lines of the source, where these tell as much as all of it.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odf_engines.contract import IngestRequest, IngestResponse
from odf_protocol.events import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepNdGeoJson,
    ReadStepNdJson,
)

if TYPE_CHECKING:
    from odf_node.engines.sessions import EngineHost

HEAD_BYTES: Final = 256 * 1024  # guess: a few rows of nearly any source

MOST_ROWS: Final = 3  # guess: enough to see how values look, few enough to be read


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


def sample_before_merge(engines: "EngineHost", request: IngestRequest) -> tuple[StageSample, ...]:
    """Show rows as they are read, as converters give them, and as a query does; stages that there are.

    Args:
        engines: They run the stages.
        request: The ingest that is rehearsed.

    Raises:
        InvalidSourceError, InvalidQueryError, EngineError: As the ingest itself.
    """
    # Times and names of columns as the stages behind see them.
    read = replace(request, converters=(), validators=())
    samples = [StageSample(Stage.READ, _sample_head(engines, read) or _first_rows(engines.convert(read).rows))]
    if request.converters:
        samples.append(StageSample(Stage.CONVERTED, _first_rows(engines.convert(request).rows)))
    if request.preprocess is not None:
        # Merged with nothing that is there; streams say themselves what their rows do.
        is_stream = isinstance(request.merge, MergeStrategyChangelogStream | MergeStrategyUpsertStream)
        merge = request.merge if is_stream else MergeStrategyAppend()
        alone = replace(request, merge=merge, validators=(), known_schema=None, state_path=None, next_offset=0)
        made, known = engines.ingest(alone).data_path, request.vocabulary
        hidden = {known.offset, known.system_time} | (set() if is_stream else {known.op})
        rows = () if made is None else _first_rows(made)
        rows = tuple({name: value for name, value in row.items() if name not in hidden} for row in rows)
        samples.append(StageSample(Stage.QUERIED, rows))
    return tuple(samples)


def _sample_head(engines: "EngineHost", request: IngestRequest) -> tuple[dict[str, Any], ...]:
    """Show the first rows of the first lines of a source; none where all of it has to be read for them."""
    step, source = request.read, request.source_path
    is_of_lines = request.reader is None and isinstance(step, ReadStepCsv | ReadStepNdJson | ReadStepNdGeoJson)
    # Types that nobody declared are guessed from more records.
    guesses = not (step.ddl_schema or step.schema) and not (isinstance(step, ReadStepCsv) and not step.infer_schema)
    if not is_of_lines or guesses or source.stat().st_size <= HEAD_BYTES:
        return ()
    with source.open("rb") as file:
        lines = file.read(HEAD_BYTES)
    head = source.with_name(f"head-{source.name}")
    # A record that goes on behind the last line is broken in it, and no row.
    head.write_bytes(lines[: lines.rfind(b"\n") + 1])
    try:
        rows = _first_rows(engines.convert(replace(request, source_path=head)).rows)
    finally:
        head.unlink()
    return rows if len(rows) == MOST_ROWS else ()


def sample_result(response: IngestResponse) -> tuple[StageSample, ...]:
    """Show rows as they would be written, and rows that would be refused with all their errors."""
    samples = []
    if response.data_path is not None:
        samples.append(StageSample(Stage.WRITTEN, _first_rows(response.data_path)))
    if response.quarantine_path is not None:
        names = ("record", "line", "original", "errors")
        samples.append(StageSample(Stage.REFUSED, _first_rows(response.quarantine_path, names)))
    return tuple(samples)


def _first_rows(path: Path, names: tuple[str, ...] | None = None) -> tuple[dict[str, Any], ...]:
    return tuple(_iter_first(path, names))


def _iter_first(path: Path, names: tuple[str, ...] | None) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    from odf_protocol.cell_values import cell_value

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=MOST_ROWS, columns=names and [*names]):
            for index in range(batch.num_rows):
                named = zip(batch.schema.names, batch.columns, strict=True)
                yield {name: cell_value(column[index]) for name, column in named}
            return
