"""What a run of a derivative did, and how those who observe hear of a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from odf_engines.contract import TransformResponse
from odf_node.datasets.versions import columns_of_schema, version_of
from odf_node.derive.step_figures import StepClock
from odf_node.ports import DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_node.ports.observing import DatasetVersion, Run, RunKind
from odf_protocol.did import DatasetId
from odf_protocol.transform_plan import PlannedInput

__all__ = ["TransformReport", "note_step", "run_of_step", "versions_read"]


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


def run_of_step(chains: ChainStore, record: DatasetRecord, planned: Sequence[PlannedInput], engine: str) -> Run:
    """Say what begins with a step of a derivative of this node."""
    inputs = tuple(versions_read(chains, planned))
    return Run(kind=RunKind.STEP, dataset=version_of(record), inputs=inputs, engine=engine.partition("@")[0])


def versions_read(chains: ChainStore, planned: Sequence[PlannedInput]) -> list[DatasetVersion]:
    """List the inputs of a step as it reads them."""
    return [_version_read(chains, each) for each in planned]


def _version_read(chains: ChainStore, planned: PlannedInput) -> DatasetVersion:
    read = planned.recorded
    dataset_id: DatasetId = read.dataset_id
    record = chains.find_dataset(dataset_id)
    block = read.new_block_hash or read.prev_block_hash
    name = str(dataset_id) if record is None else record.name
    return DatasetVersion(dataset_id=str(dataset_id), name=name, block=None if block is None else str(block))


def note_step(run: Run, report: TransformReport, response: TransformResponse, clock: StepClock) -> None:
    """Say of a run what came of its step."""
    run.rows, run.milliseconds = report.new_rows, dict(clock.milliseconds)
    if not report.up_to_date:
        run.written = version_of(report.record, columns_of_schema(response.schema))
