"""Derived data as a cache: run recorded steps again, and put back the files that they made (CACHE-3, CACHE-4)."""

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from odf_engines.contract import TransformResponse
from odf_engines.engine import EngineSession
from odf_engines.errors import EngineMissingError
from odf_node.datasets.chains import iter_decoded, load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.datasets.writer import StagedOutputs
from odf_node.derive.holding import find_holds
from odf_node.derive.steps import StepBuilder
from odf_node.derive.whole_inputs import WholeInputs
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from odf_node.ports.progress import Count, OnProgress
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.rows.file_hashes import logical_hash_of
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView, apply, start_view
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, NotFoundError, RejectedError
from odf_protocol.events import ExecuteTransform
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.step_record_codec import decode_step_record


@dataclass(frozen=True, slots=True)
class FileStep:
    """A step, the derivative before it, and those of its files that are in question."""

    block: Block
    before: DatasetView
    files: frozenset[Multihash]

    @property
    def event(self) -> ExecuteTransform:
        """What the block records."""
        assert isinstance(self.block.event, ExecuteTransform)
        return self.block.event


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What came back; ``problems`` has a line for each file that could not be made again."""

    files: int = 0
    size_bytes: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """Runs steps of derivatives again for the sake of their files; blocks are never touched."""

    home: Home
    engines: EngineHost

    def list_steps(self, record: DatasetRecord, wanted: Collection[Multihash]) -> list[FileStep]:
        """Find the steps that make the wanted files, oldest first, with those whose checkpoints they start from."""
        needed = set(wanted)
        absent = Presence(self.home.store, self.home.objects).find_absent(record)
        lost: list[FileStep] = []
        for step in reversed(self.list_steps_with_files(record)):
            lacks = frozenset(name for name in step.files & needed if name in absent or not self.home.objects.has(name))
            if lacks:
                lost.append(replace(step, files=lacks))
                if step.before.query_checkpoint is not None:
                    needed.add(step.before.query_checkpoint)
        return lost[::-1]

    def list_inputs(self, steps: Sequence[FileStep]) -> dict[DatasetId, set[Multihash]]:
        """Say which files of which inputs the steps read.

        Raises:
            NotFoundError: An input, or a block of it, is not held here.
            RejectedError: PLAN-5.
        """
        builder = StepBuilder(self.home.store, self.home.objects)
        needed: dict[DatasetId, set[Multihash]] = {}
        for step in steps:
            for recorded in step.event.query_inputs:
                slices = builder.plan_recorded(recorded).slices
                needed.setdefault(recorded.dataset_id, set()).update(item.physical_hash for item in slices)
        return needed

    def list_next_files(self, record: DatasetRecord) -> dict[DatasetId, set[Multihash]]:
        """Say which files the next steps of a derivative read, by dataset; errors as ``StepBuilder.plan_next``."""
        view = load_view(self.home.store, record.id)
        needed: dict[DatasetId, set[Multihash]] = {}
        builder = StepBuilder(self.home.store, self.home.objects, find_holds(self.home, record))
        for planned in builder.plan_next(view, None):
            hashes = needed.setdefault(planned.recorded.dataset_id, set())
            hashes.update(item.physical_hash for item in planned.slices)
        if view.query_checkpoint is not None:
            needed[record.id] = {view.query_checkpoint}
        return needed

    def find_obstacle(self, record: DatasetRecord) -> str:
        """Say why files of the dataset could perhaps not be made again here; empty: they can."""
        steps = self.list_steps_with_files(record)
        try:
            self.list_inputs(steps)
        except NotFoundError as error:
            return str(error)
        for step in steps:
            if step.before.transform is None:
                return f"block {step.block.sequence_number} follows no declared query"
            stored = self.home.store.find_step_record(record.id, step.block.hash)
            if stored is None:
                return f"block {step.block.sequence_number} has no step record"
            try:
                made_by = decode_step_record(stored.raw).record.engine
                here = self.engines.get_digest(self._choose(record, step))
            except (EngineMissingError, MalformedError) as error:
                return str(error)
            if made_by.digest != here:
                return (
                    f"block {step.block.sequence_number} was made by another build of the engine "
                    f"({made_by.name} {made_by.version}, {made_by.digest.short})"
                )
        return ""

    def list_steps_with_files(self, record: DatasetRecord) -> list[FileStep]:
        """List every step that names files, here or not."""
        steps: list[FileStep] = []
        view: DatasetView | None = None
        for block in iter_decoded(self.home.store, record.id):
            if view is not None and isinstance(block.event, ExecuteTransform):
                files = frozenset(item.hash for item in iter_wanted(block.event))
                if files:
                    steps.append(FileStep(block, view, files))
            view = apply(view, block) if view else start_view(block)
        return steps

    def rebuild(self, record: DatasetRecord, steps: Sequence[FileStep], on_progress: OnProgress) -> RebuildReport:
        """Run steps again and keep what has the hashes of their blocks; the files of their inputs are here.

        Raises:
            EngineError: The engine failed, or is not installed.
            ObjectsAbsentError: A file of an input is not here.
            RejectedError, BlockNotFoundError: A step contradicts its inputs.
        """
        files = size_bytes = 0
        problems: list[str] = []
        with ExitStack() as stack, self.home.objects.writing():
            sessions: dict[str, EngineSession] = {}
            rows = EngineRows(self.home.store, self.home.objects, self.engines.rows)
            whole_inputs = WholeInputs(self.home.store, rows)
            for done, step in enumerate(steps):
                name = self._choose(record, step)
                if name not in sessions:
                    on_progress(f"starting the sandboxed engine '{name}'")
                    sessions[name] = self._open(record, name, stack)
                on_progress("computing files again", Count(done, len(steps), "steps"))
                builder = StepBuilder(self.home.store, self.home.objects)
                planned = tuple(builder.plan_recorded(recorded) for recorded in step.event.query_inputs)
                request = builder.build(
                    step.before,
                    planned,
                    system_time=step.block.system_time,
                    limits=self.engines.limits,
                    checkpoint=self._find_checkpoint(record, step),
                ).request
                request = rows.put_into(request, planned)
                completed = whole_inputs.complete(
                    request, planned, sessions[name], is_redefined=step.before.is_redefined
                )
                response = sessions[name].transform(completed.request)
                came_back, problem = self._put_back(step, response, name)
                files += len(came_back)
                size_bytes += sum(self.home.objects.get_size(item) for item in came_back)
                problems += [problem] if problem else []
        return RebuildReport(files, size_bytes, tuple(problems))

    def _choose(self, record: DatasetRecord, step: FileStep) -> str:
        """Say which build here computes a step again (ADDED-19)."""
        assert step.before.transform is not None
        stored = self.home.store.find_step_record(record.id, step.block.hash)
        made_by = None if stored is None else decode_step_record(stored.raw).record.engine.digest
        return self.engines.choose_build(step.before.transform.transform, made_by)

    def _find_checkpoint(self, record: DatasetRecord, step: FileStep) -> Path | None:
        """Give the state that a step starts from, where it is this node's own or equal to it (PLAN-12)."""
        name = step.before.query_checkpoint
        if name is None:
            return None
        if record.trust not in {Trust.OWN, Trust.REEXECUTED}:
            raise RejectedError(
                "PLAN-12 checkpoint-was-computed-here", sequence_number=step.block.sequence_number, found=name
            )
        return self.home.objects.get_path(name)

    def _open(self, record: DatasetRecord, name: str, stack: ExitStack) -> EngineSession:
        if record.origin is Origin.OWN:
            return self.engines.own_session(name)
        return stack.enter_context(self.engines.foreign_session(name))

    def _put_back(self, step: FileStep, response: TransformResponse, engine: str) -> tuple[list[Multihash], str]:
        event = step.event
        made: list[tuple[Multihash, Path | None]] = []
        if event.new_data is not None:
            made.append((event.new_data.physical_hash, response.data_path))
        if event.new_checkpoint is not None:
            made.append((event.new_checkpoint.physical_hash, response.checkpoint_path))
        came_back: list[Multihash] = []
        problem = ""
        with ExitStack() as stack:
            outputs = StagedOutputs(self.home.objects, stack)
            for name, path in made:
                if name not in step.files:
                    continue
                staged = None if path is None else outputs.stage(path)
                if staged is not None and staged.hash == name:
                    self.home.objects.put(staged, name)
                    EngineRows(self.home.store, self.home.objects, self.engines.rows).adopt(name, engine)
                    came_back.append(name)
                    continue
                data = event.new_data
                is_slice = data is not None and name == data.physical_hash
                same_rows = staged is not None and data is not None and is_slice
                if same_rows and staged is not None and data is not None:
                    same_rows = logical_hash_of(staged.path) == data.logical_hash
                problem = problem or self._explain(step, engine, same_rows=same_rows)
        # Who could compute this may have it: the inputs are for everybody who reads here. Else it is for this node.
        inputs = [self.home.store.find_dataset(read.dataset_id) for read in event.query_inputs]
        for_all = all(source is not None and source.published for source in inputs)
        self.home.store.mark_present(step.before.dataset_id, came_back, brought=for_all)
        return came_back, problem

    def _explain(self, step: FileStep, engine: str, *, same_rows: bool) -> str:
        number = step.block.sequence_number
        if not same_rows:
            return f"block {number}: computing it again does not give what the block says; 'odf-node verify' shows more"
        here = self.engines.get_engine(engine)
        return (
            f"block {number}: equal rows come out in other bytes (the engine here is {here.name} {here.version}, "
            f"{here.digest().short}), so the file that the block names cannot be made again here; "
            "it has to come from a node that has it"
        )
