"""Step records: written beside every step of ours, and checked where a peer sends one."""

from collections.abc import Sequence

from odf_engines.contract import TransformRequest
from odf_engines.engine import Engine
from odf_node.ports.keys import PrivateKey
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import RejectedError
from odf_protocol.key_history import KeyHistory
from odf_protocol.multihash import Multihash
from odf_protocol.step_metrics import StepMetrics
from odf_protocol.step_record import (
    EngineIdentity,
    InputWatermark,
    StepInput,
    StepRecord,
    StepSlice,
    check_record_describes,
    hash_transform,
)
from odf_protocol.step_record_codec import decode_step_record, sign_step_record
from odf_protocol.transform_plan import PlannedInput


def make_record(
    request: TransformRequest,
    inputs: Sequence[PlannedInput],
    view: DatasetView,
    engine: Engine,
    statistics: StepMetrics | None,
) -> StepRecord:
    """Write down everything that fixes the result of a step, and its figures; ``view`` is the derivative before it."""
    limits = request.limits
    return StepRecord(
        dataset_id=view.dataset_id,
        engine=identity_of(engine),
        settings=engine.settings,
        limits={
            "memory_bytes": limits.memory_bytes,
            "wall_ms": int(limits.wall_s * 1000),
            "output_bytes": limits.output_bytes,
            "output_rows": limits.output_rows,
        },
        transform=hash_transform(request.transform),
        vocabulary=request.vocabulary,
        inputs=_inputs_of(request, inputs),
        system_time=request.system_time,
        next_offset=request.next_offset,
        prev_checkpoint=view.prev_checkpoint,
        prev_watermark=request.prev_watermark,
        statistics=statistics,
    )


def sign_record(key: PrivateKey, record: StepRecord) -> bytes:
    """Sign a record with the dataset's key."""
    return sign_step_record(key.seed, record)


def check_record(raw: bytes, block: Block, keys: KeyHistory, before: DatasetView | None) -> StepRecord:
    """Check that a record that came with a block is signed by the dataset's key and describes that block.

    Args:
        raw: Untrusted.
        block: What it came with.
        keys: Who speaks for the dataset.
        before: What is in force before the block, None where it is the first.

    Raises:
        MalformedError, RejectedError: It is not, or does not.
    """
    signed = decode_step_record(raw)
    signer = keys.key_at(block.sequence_number)
    if signed.signer != signer:
        raise RejectedError(
            "REPLAY-5 signed-by-the-dataset-key",
            sequence_number=block.sequence_number,
            expected=signer,
            found=signed.signer,
        )
    check_record_describes(signed.record, block, keys.dataset_id)
    if before is None or before.transform is None:
        raise RejectedError("CHAIN-25 transform-is-declared", sequence_number=block.sequence_number)
    record, transform = signed.record, before.transform
    in_force: list[tuple[str, object, object]] = [
        ("transform", hash_transform(transform.transform), record.transform),
        ("aliases", [i.alias or i.dataset_ref for i in transform.inputs], [i.alias for i in record.inputs]),
        ("vocabulary", before.vocabulary, record.vocabulary),
        ("watermark", before.watermark, record.prev_watermark),
    ]
    for name, expected, found in in_force:
        if expected != found:
            rule = f"REPLAY-8 {name}-in-force"
            raise RejectedError(rule, sequence_number=block.sequence_number, expected=expected, found=found)
    return record


def check_record_inputs(
    record: StepRecord, inputs: Sequence[PlannedInput], request: TransformRequest, sequence_number: int
) -> None:
    """Check that a record names what the step reads from the copies held here (REPLAY-7).

    Args:
        record: That came with the step.
        inputs: Of the step, from the copies held here.
        request: Built from them.
        sequence_number: Of the step's block.

    Raises:
        RejectedError: It names something else.
    """
    for stated, held in zip(record.inputs, _inputs_of(request, inputs), strict=True):
        checks: list[tuple[str, object, object]] = [
            ("slices-that-are-held", _named(held.slices), _named(stated.slices)),
            ("watermarks-of-the-input", held.watermarks, stated.watermarks),
            ("vocabulary-of-the-input", held.vocabulary, stated.vocabulary),
        ]
        for name, expected, found in checks:
            if expected != found:
                rule = f"REPLAY-7 {name} (input {stated.dataset_id})"
                raise RejectedError(rule, sequence_number=sequence_number, expected=expected, found=found)


def check_record_engine(record: StepRecord, engine: Engine, digest: Multihash, sequence_number: int) -> bool:
    """Check what a record says of its engine, where that is the one installed here (REPLAY-9).

    ``digest`` is the engine's: to find it takes a look at all its files, so it is looked for once for many records.

    Returns:
        Whether it is; of another engine nothing can be said.

    Raises:
        RejectedError: It is, and has other settings than the record states.
    """
    if record.engine.digest != digest:
        return False
    if dict(record.settings) != dict(engine.settings):
        names = {name for name, _ in record.settings.items() ^ engine.settings.items()}
        raise RejectedError(
            "REPLAY-9 settings-of-the-engine",
            sequence_number=sequence_number,
            expected="those that the engine of this digest has",
            found=f"others for {', '.join(sorted(names))}",
        )
    return True


def _inputs_of(request: TransformRequest, inputs: Sequence[PlannedInput]) -> tuple[StepInput, ...]:
    return tuple(
        StepInput(
            dataset_id=planned.recorded.dataset_id,
            alias=given.alias,
            vocabulary=given.vocabulary,
            slices=tuple(StepSlice(part.logical_hash, part.physical_hash) for part in planned.slices),
            offset_interval=planned.offset_interval,
            watermarks=tuple(InputWatermark(mark.system_time, mark.event_time) for mark in planned.watermarks),
        )
        for planned, given in zip(inputs, request.inputs, strict=True)
    )


def _named(slices: Sequence[StepSlice]) -> str:
    return ", ".join(f"{part.physical_hash} (rows {part.logical_hash})" for part in slices) or "none"


def identity_of(engine: Engine) -> EngineIdentity:
    """Name an engine by its contents."""
    return EngineIdentity(engine.name, engine.version, engine.digest())
