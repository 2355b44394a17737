"""The one verifier: chain, objects, rows, re-execution. Pull, push, import and ``verify`` all go through it.

Each function below does one of the steps that ``acceptance`` numbers, raises at the first thing that is wrong, and
changes nothing.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from odf_engines.engine import EngineSession
from odf_engines.errors import EngineMissingError, InvalidQueryError, LimitExceededError, NotReproducibleError
from odf_node.acceptance.checked_chain import ChainCheck, ChainStep, CheckedChain
from odf_node.datasets.chains import iter_decoded, load_view
from odf_node.derive.reexecution import Replayer, StepMismatch
from odf_node.derive.step_records import check_record_engine
from odf_node.engines.sessions import EngineHost
from odf_node.ports.block_stage import MemoryStage, ProposedBlock
from odf_node.ports.observing import DatasetVersion, Run, RunKind
from odf_node.ports.progress import Count, OnProgress
from odf_node.readable_inputs import find_input
from odf_node.records.access import READS_EVERYTHING, ReadGrants
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_node.wording import count_of
from odf_protocol import block_traits as traits
from odf_protocol.block import Block, decode_block
from odf_protocol.chain import ChainState
from odf_protocol.dataset_view import DatasetView, apply
from odf_protocol.errors import RejectedError
from odf_protocol.events import DatasetKind, ExecuteTransform, SetTransform, TransformSql
from odf_protocol.key_history import KeyHistory
from odf_protocol.step_record import EngineIdentity, StepRecord
from odf_protocol.transform_plan import input_ids


class ReexecutionMismatchError(RejectedError):
    """Re-execution of a step gave other data than was published; ``mismatch`` is the evidence.

    ``by_other_build`` says that its record names another build of the engine, of which nothing is known (REPLAY-9).
    """

    def __init__(self, mismatch: StepMismatch, *, by_other_build: bool) -> None:
        super().__init__("PLAN-7 step-is-reproduced", sequence_number=mismatch.block.sequence_number)
        number, difference = mismatch.block.sequence_number, mismatch.divergence.explain()
        self.args = (f"block {number} is not what its declared query gives: {difference}",)
        self.mismatch = mismatch
        self.by_other_build = by_other_build


class UnrepeatableQueryError(RejectedError):
    """The query of a step is one that the engine here does not take; ``by_other_build`` as above."""

    def __init__(self, sequence_number: int, found: object, *, by_other_build: bool) -> None:
        super().__init__("PLAN-7 query-can-be-repeated", sequence_number=sequence_number, found=found)
        self.by_other_build = by_other_build


def check_chain(
    proposed: Iterable[ProposedBlock],
    *,
    keys: KeyHistory,
    state: ChainState | None,
    before: DatasetView | None,
    signed: bool,
) -> CheckedChain:
    """Check blocks that follow ``state`` (None: they start with the Seed): decoding, link, every rule, signatures.

    Raises:
        MalformedError, UnsupportedError: Bytes that are no block of a known version.
        RejectedError: A rule is broken or a signature is missing or wrong.
    """
    check = ChainCheck(MemoryStage(), keys=keys, state=state, before=before, signed=signed)
    for item in proposed:
        check.take(item)
    return check.finish()


def check_stored(
    store: MetadataStore,
    record: DatasetRecord,
    *,
    keys: KeyHistory,
    signed: bool,
    state: ChainState | None = None,
    upto: int | None = None,
) -> CheckedChain:
    """Check blocks of this node as ``check_chain`` does, with their step records, as if somebody had sent them.

    Args:
        store: What the home keeps.
        record: Whose they are.
        keys: Who speaks for the dataset.
        signed: Every block has to be signed.
        state: After the block before the first one; None: from the Seed on.
        upto: Number of the last one; None: the head.
    """
    after = -1 if state is None else state.sequence_number
    has_steps = record.kind is DatasetKind.DERIVATIVE

    def iter_proposed() -> Iterator[ProposedBlock]:
        for stored in store.iter_blocks(record.id, after=after, upto=upto):
            step_record = store.find_step_record(record.id, stored.hash) if has_steps else None
            yield ProposedBlock(stored.raw, stored.signature, None if step_record is None else step_record.raw)

    before = None if state is None else load_view(store, record.id, upto=after)
    return check_chain(iter_proposed(), keys=keys, state=state, before=before, signed=signed)


def find_missing_inputs(chain: CheckedChain, store: MetadataStore, reads: ReadGrants = READS_EVERYTHING) -> list[str]:
    """Say which inputs, or blocks of inputs, the steps read and this node does not hold (ACCEPT-7).

    To those who may not read an input it is as if it were not here (EX-83).
    """
    missing: dict[str, None] = {}

    def look_at(transform: SetTransform | None) -> None:
        missing.update((text, None) for text in _missing_inputs(transform, store, reads))

    declared = None if chain.before is None else chain.before.transform
    looked_at: SetTransform | None = None
    for block in chain.iter_blocks(traits.DEFINITION | traits.STEP):
        if isinstance(block.event, SetTransform):
            declared = block.event
        elif isinstance(block.event, ExecuteTransform):
            if declared is not looked_at:
                look_at(declared)
                looked_at = declared
            missing.update((text, None) for text in _missing_input_blocks(block.event, store, reads))
    look_at(chain.view.transform)
    return list(missing)


def reexecute_steps(
    chain: CheckedChain,
    replayer: Replayer,
    engines: EngineHost,
    on_progress: OnProgress,
    *,
    known_before: bool = False,
    whole: Count | None = None,
) -> int:
    """Run every recorded step again, all of one dataset in one engine process; return how many.

    Args:
        chain: The blocks.
        replayer: Has their slices, the inputs and the blocks before.
        engines: Run them.
        on_progress: Hears after each step how many are done.
        known_before: What stands before these blocks was re-executed here, so that a checkpoint that it left is what
            this node computed. Otherwise the steps that led to it are run again, too (PLAN-12).
        whole: How many steps were run before these, and of how many; None: these are all.

    Raises:
        ReexecutionMismatchError: A step gives something else; the re-executed slice is there until ``engines`` closes.
        RejectedError: The query is one that nobody could repeat, or the step contradicts its inputs.
        EngineError: The engine failed for reasons that say nothing about the publisher.
    """
    chains = replayer.store
    replayed, whole = 0, whole or Count(0, chain.count(traits.STEP), "steps")
    state = None if chain.before is None else chain.before.query_checkpoint
    earlier: Iterable[ChainStep] = ()
    if state is not None and known_before:
        replayer.checkpoints[state] = replayer.objects.get_path(state)
    elif state is not None:
        earlier = _steps_of_query(chains, chain)
    with ExitStack() as stack:
        sessions: dict[str, EngineSession] = {}
        for step in itertools.chain(earlier, chain.iter_steps(traits.STEP)):
            block, before, record = step.block, step.before, step.record
            if before is None or before.transform is None:
                raise RejectedError("CHAIN-25 transform-is-declared", sequence_number=block.sequence_number)
            name = engines.choose_build(before.transform.transform, None if record is None else record.engine.digest)
            if name not in sessions:
                on_progress(f"starting the sandboxed engine '{name}'")
                sessions[name] = stack.enter_context(engines.foreign_session(name))
            if block.sequence_number < chain.first.sequence_number:
                on_progress(f"re-executing block {block.sequence_number}, to which these lead back")
            else:
                on_progress("re-executing", Count(whole.done + replayed, whole.total, "steps"))
            engine = engines.get_engine(name)
            is_other = record is not None and not check_record_engine(
                record, engine, engines.get_digest(name), block.sequence_number
            )
            try:
                with engines.observer.observing(_run_of(chain, chains, block, name)):
                    mismatch = replayer.replay(
                        sessions[name],
                        before,
                        block,
                        record,
                        build=name,
                        digest=engines.get_digest(name),
                        limits=engines.limits,
                        evidence=engines.workspace,
                    )
                    if mismatch is not None:
                        raise ReexecutionMismatchError(mismatch, by_other_build=is_other)
            except LimitExceededError as error:
                where = f"{f'{error.where}, ' if error.where else ''}block {block.sequence_number}"
                raise LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where=where) from error
            except (InvalidQueryError, NotReproducibleError) as error:
                raise UnrepeatableQueryError(block.sequence_number, error, by_other_build=is_other) from error
            replayed += block.sequence_number >= chain.first.sequence_number
    return replayed


def describe_order(replayer: Replayer) -> str:
    """Say of how many steps the order of rows is not proved (PLAN-19); empty where it is of all."""
    count = len(replayer.unordered)
    return f"of {count_of(count, 'step')} the rows are proved, and not their order" if count else ""


def _run_of(chain: CheckedChain, store: MetadataStore, block: Block, engine: str) -> Run:
    """Say what begins with a re-execution; which inputs it reads is checked by it first."""
    record = store.find_dataset(chain.dataset_id)
    name = str(chain.dataset_id) if record is None else record.name
    dataset = DatasetVersion(dataset_id=str(chain.dataset_id), name=name, block=str(block.hash))
    number = block.sequence_number
    return Run(kind=RunKind.REEXECUTION, dataset=dataset, engine=engine.partition("@")[0], block_number=number)


def _steps_of_query(store: MetadataStore, chain: CheckedChain) -> Iterator[ChainStep]:
    """Yield the steps of the query in force before ``chain`` that are held here, from its first one on."""
    assert chain.before is not None
    last = chain.before.sequence_number
    declared = [
        item.sequence_number
        for item in store.iter_landmarks(chain.dataset_id, upto=last)
        if isinstance(decode_block(item.raw, expected_hash=item.hash).event, SetTransform)
    ]
    view = load_view(store, chain.dataset_id, upto=declared[-1])
    for block in iter_decoded(store, chain.dataset_id, after=declared[-1], upto=last):
        after = apply(view, block)
        if isinstance(block.event, ExecuteTransform):
            yield ChainStep(block, view, after, None)
        view = after


@dataclass(frozen=True, slots=True)
class RecordedEngines:
    """What the step records of a chain say about engines: builds that are not installed here, and how many steps."""

    steps: int
    recorded: int
    others: tuple[tuple[EngineIdentity, int], ...]

    def describe(self) -> list[str]:
        """Say in lines what a person should know."""
        lines = [
            f"{count} of {self.steps} steps were made by another build of the engine, {each.name} {each.version} "
            f"(digest {each.digest})"
            for each, count in self.others
        ]
        if self.recorded < self.steps:
            lines.append(f"{self.steps - self.recorded} of {self.steps} steps have no step record")
        return lines


def check_records(
    chain: CheckedChain, replayer: Replayer, engines: EngineHost, *, with_inputs: bool
) -> RecordedEngines:
    """Check what step records say beyond the chain itself: engine and, with ``with_inputs``, what was read.

    Raises:
        RejectedError: REPLAY-7, REPLAY-9.
    """
    steps = recorded = 0
    others: dict[EngineIdentity, int] = {}
    for step in chain.iter_steps(traits.STEP):
        steps += 1
        record = step.record
        if record is not None and step.before is not None:
            recorded += 1
            if not _is_made_here(engines, record, step.block.sequence_number):
                others[record.engine] = others.get(record.engine, 0) + 1
            if with_inputs:
                replayer.check_inputs(step.before, step.block, record)
    return RecordedEngines(steps, recorded, tuple(others.items()))


def _is_made_here(engines: EngineHost, record: StepRecord, sequence_number: int) -> bool:
    """Say whether the build that a record names is here."""
    try:
        build = engines.choose_build(TransformSql(engine=record.engine.name), record.engine.digest)
        engine = engines.get_engine(build)
    except EngineMissingError:
        return False
    return check_record_engine(record, engine, engines.get_digest(build), sequence_number)


def _missing_inputs(transform: SetTransform | None, store: MetadataStore, reads: ReadGrants) -> Iterator[str]:
    if transform is None:
        return
    for dataset_id, item in zip(input_ids(transform), transform.inputs, strict=True):
        if find_input(store, dataset_id, reads) is None:
            yield f"input '{item.alias or item.dataset_ref}' ({dataset_id}) is not in this node"
        elif absent := store.list_absent_objects(dataset_id):
            yield f"input '{item.alias or item.dataset_ref}' lacks {len(absent)} files here; pull it again"


def _missing_input_blocks(event: ExecuteTransform, store: MetadataStore, reads: ReadGrants) -> Sequence[str]:
    missing = []
    for read in event.query_inputs:
        record = find_input(store, read.dataset_id, reads)
        last = read.new_block_hash or read.prev_block_hash
        if record is not None and last is not None and store.find_block(read.dataset_id, last) is None:
            missing.append(f"input '{record.name}' has no block {last.short} in this node; pull it again")
    return missing
