"""What a run of a derivative did, and how those who observe hear of a step."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from odf_engines.contract import TransformInput, TransformRequest, TransformResponse
from odf_engines.errors import LimitExceededError
from odf_node.datasets.versions import columns_of_schema, version_of
from odf_node.derive.step_figures import StepClock
from odf_node.ports import DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_node.ports.observing import DatasetVersion, Run, RunKind
from odf_protocol.transform_plan import PlannedInput


@dataclass(frozen=True, slots=True)
class TransformReport:
    """What a run of a derivative did; no rows and no new watermark means that it was up to date.

    ``reaches_heads``: the inputs were read to their ends. ``taken_rows``: of the inputs, that no step took before.
    ``late_rows``: of the inputs, that came too late to change what was given already, and were left out for that.
    """

    record: DatasetRecord
    up_to_date: bool
    new_rows: int = 0
    new_blocks: int = 0
    read_rows: int = 0
    taken_rows: int = 0
    late_rows: int = 0
    seconds: float = 0.0
    reaches_heads: bool = True


def run_of_step(
    chains: ChainStore, record: DatasetRecord, planned: Sequence[PlannedInput], request: TransformRequest, engine: str
) -> Run:
    """Say what begins with a step of a derivative of this node, and which versions of its inputs it reads."""
    inputs = tuple(_version_read(chains, *each) for each in zip(planned, request.inputs, strict=True))
    return Run(kind=RunKind.STEP, dataset=version_of(record), inputs=inputs, engine=engine.partition("@")[0])


def _version_read(chains: ChainStore, planned: PlannedInput, asked: TransformInput) -> DatasetVersion:
    from odf_protocol.schema_arrow import rows_schema_of

    read = planned.recorded
    record = chains.find_dataset(read.dataset_id)
    block = read.new_block_hash or read.prev_block_hash
    return DatasetVersion(
        dataset_id=str(read.dataset_id),
        name=str(read.dataset_id) if record is None else record.name,
        block=None if block is None else str(block),
        columns=columns_of_schema(rows_schema_of(asked.schema)),
    )


def note_step(run: Run, report: TransformReport, response: TransformResponse, clock: StepClock) -> None:
    """Say of a run what came of its step."""
    run.rows, run.milliseconds = report.new_rows, dict(clock.milliseconds)
    if not report.up_to_date:
        run.written = version_of(report.record, columns_of_schema(response.schema))


@contextmanager
def naming_step(record: DatasetRecord, request: TransformRequest) -> Iterator[None]:
    """Say of a limit that is reached inside at which step it was, and how much that was given (ENGINE-16).

    Raises:
        LimitExceededError: The same, with its place.
    """
    try:
        yield
    except LimitExceededError as error:
        given = [part for each in request.inputs for part in (each.offset_interval, *each.earlier_intervals)]
        rows = sum(part.row_count for part in given if part is not None)
        where = f"the next step of {record.name}, over {rows:,} rows of its inputs"
        where = f"{error.where}, {where}" if error.where else where
        raise LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where=where) from error
