"""Running a recorded step of a derivative again, to see whether it says the same.

Clauses: PLAN-5 to PLAN-15 in ``spec/transform.md``, REPLAY-14 in ``spec/extensions/replay.md``.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from odf_engines.contract import Limits
from odf_engines.engine import EngineSession
from odf_node.datasets.engine_rows import EngineRows
from odf_node.derive.step_comparison import find_divergence, is_in_order, reexecuted_hash_of
from odf_node.derive.step_measurements import check_metrics, metrics_of
from odf_node.derive.step_records import check_record_inputs
from odf_node.derive.steps import StepBuilder
from odf_node.derive.whole_inputs import WholeInputs
from odf_node.ports.objects import ObjectStore
from odf_node.ports.rows import RowsCache
from odf_node.store import MetadataStore
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.divergence import Cause, Divergence
from odf_protocol.errors import RejectedError
from odf_protocol.events import ExecuteTransform
from odf_protocol.multihash import Multihash
from odf_protocol.step_record import StepRecord
from odf_protocol.transform_plan import check_step_time


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMismatch:
    """A step that says something else than its re-execution: the claim, and how it differs (PLAN-7).

    ``recomputed`` is the slice that re-execution gave, in the folder that ``replay`` was given for it.
    """

    block: Block
    dataset_id: DatasetId
    engine: str
    divergence: Divergence
    published: Path | None
    reexecuted: Path | None
    reexecuted_hash: Multihash | None


@dataclass(frozen=True, slots=True)
class Replayer:
    """Runs recorded steps again and compares; keeps nothing.

    ``paths`` has the slices of the chain under test, which may not be in the object store yet; ``checkpoints`` what
    re-executed steps left, never what a publisher sent (PLAN-12). ``unordered`` are the blocks that were reproduced
    as bags of rows, so that the order of their rows, and with it their offsets, is the publisher's word (PLAN-19).
    """

    store: MetadataStore
    objects: ObjectStore
    rows: RowsCache
    paths: Mapping[Multihash, Path]
    checkpoints: dict[Multihash, Path] = field(default_factory=dict)
    unordered: set[Multihash] = field(default_factory=set)
    whole_inputs: WholeInputs = field(init=False)

    def __post_init__(self) -> None:
        rows = EngineRows(self.store, self.objects, self.rows)
        object.__setattr__(self, "whole_inputs", WholeInputs(self.store, rows))

    def check_inputs(self, view: DatasetView, block: Block, record: StepRecord) -> None:
        """Check what a record says of a step's inputs against the copies held here, without an engine (REPLAY-7).

        Raises:
            RejectedError, BlockNotFoundError: It says something else, or they are not held here.
        """
        event = block.event
        assert isinstance(event, ExecuteTransform)
        builder = StepBuilder(self.store, self.objects)
        planned = tuple(builder.plan_recorded(recorded) for recorded in event.query_inputs)
        step = builder.build(view, planned, system_time=block.system_time, limits=Limits(), checkpoint=None)
        check_record_inputs(record, planned, step.request, block.sequence_number)

    def replay(
        self,
        session: EngineSession,
        view: DatasetView,
        block: Block,
        record: StepRecord | None,
        *,
        build: str,
        digest: Multihash,
        limits: Limits,
        evidence: Path,
    ) -> StepMismatch | None:
        """Run the step that ``block`` records and compare the answer with what it claims.

        Args:
            session: An engine of the kind that the transform in force names.
            view: The derivative before the step.
            block: With an ExecuteTransform event.
            record: The step record that came with the block, where one did.
            build: The engine that the session is of, see ``engines.finding``.
            digest: Its digest.
            limits: For the run.
            evidence: Existing folder that outlives the session; gets the slice of a step that is not reproduced.

        Returns:
            None where the step is reproduced.

        Raises:
            RejectedError, BlockNotFoundError: The step contradicts its inputs, or they are not held here; or its record
                has other figures than re-execution (REPLAY-14).
        """
        event = block.event
        assert isinstance(event, ExecuteTransform)
        builder = StepBuilder(self.store, self.objects)
        planned = tuple(builder.plan_recorded(recorded) for recorded in event.query_inputs)
        check_step_time(block.system_time, planned)
        if event.prev_offset != view.last_offset:
            # Foreign chains may begin so; rows that nobody made are then counted before the first one.
            raise RejectedError(
                "PLAN-15 step-continues-the-rows-before",
                sequence_number=block.sequence_number,
                expected=view.last_offset,
                found=event.prev_offset,
            )
        checkpoint = None if view.query_checkpoint is None else self.checkpoints[view.query_checkpoint]
        step = builder.build(view, planned, system_time=block.system_time, limits=limits, checkpoint=checkpoint)
        if record is not None:
            check_record_inputs(record, planned, step.request, block.sequence_number)

        request = self.whole_inputs.rows.put_into(step.request, planned)
        completed = self.whole_inputs.complete(request, planned, session, is_redefined=view.is_redefined)
        response = session.transform(completed.request)
        published = self._find_published(event.new_data.physical_hash) if event.new_data else None
        divergence = find_divergence(block, view, response, published)
        if divergence is None:
            if record is not None and record.statistics is not None:
                figures = metrics_of(response, completed, checkpoint)
                if figures is not None:
                    check_metrics(
                        record.statistics,
                        figures,
                        same_engine=record.engine.digest == digest,
                        sequence_number=block.sequence_number,
                    )
            if not is_in_order(block, response):
                self.unordered.add(block.hash)  # and what was computed has other offsets
            elif response.data_path is not None and published is not None and event.new_data is not None:
                self.whole_inputs.rows.adopt_result(event.new_data.physical_hash, published, response.data_path, build)
            if event.new_checkpoint is not None and response.checkpoint_path is not None:
                # It outlives the session's next request; the hash was found equal.
                kept = evidence / f"checkpoint-{block.hash}"
                shutil.move(response.checkpoint_path, kept)
                self.checkpoints[event.new_checkpoint.physical_hash] = kept
            return None
        divergence = replace(divergence, cause=divergence.cause or _find_cause_in_record(record, digest))
        reexecuted = reexecuted_hash = None
        if response.data_path is not None:
            reexecuted_hash = reexecuted_hash_of(response)
            # Not read: it may hold more than fits into memory.
            reexecuted = evidence / f"re-executed-{block.hash}.parquet"
            shutil.move(response.data_path, reexecuted)
        return StepMismatch(
            block=block,
            dataset_id=view.dataset_id,
            engine=build,
            divergence=divergence,
            published=published,
            reexecuted=reexecuted,
            reexecuted_hash=reexecuted_hash,
        )

    def _find_published(self, name: Multihash) -> Path:
        """Give a slice of the chain under test, or of its blocks that are held already."""
        return self.paths.get(name) or self.objects.get_path(name)


def _find_cause_in_record(record: StepRecord | None, digest: Multihash) -> Cause:
    """Tell another engine from tampering, where rows alone did not show the cause (REPLAY-10)."""
    if record is not None and record.engine.digest != digest:
        return Cause.ENGINE_VERSION
    return Cause.TAMPERING
