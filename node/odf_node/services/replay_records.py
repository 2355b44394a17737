"""Replay records: written beside every step of ours, and checked where a peer sends one."""

from collections.abc import Sequence

from odf_engines.contract import Engine, TransformRequest
from odf_node.ports import PrivateKey
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.replay import (
    EngineIdentity,
    InputWatermark,
    ReplayInput,
    ReplayRecord,
    ReplaySlice,
    check_record_describes,
    hash_transform,
)
from odf_protocol.replay_codec import decode_replay_record, sign_replay_record
from odf_protocol.transform_plan import PlannedInput


def make_record(
    request: TransformRequest, inputs: Sequence[PlannedInput], view: DatasetView, engine: Engine
) -> ReplayRecord:
    """Write down everything that fixes the result of a step; ``view`` is the derivative before it."""
    limits = request.limits
    return ReplayRecord(
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
        inputs=tuple(
            ReplayInput(
                dataset_id=planned.recorded.dataset_id,
                alias=given.alias,
                vocabulary=given.vocabulary,
                slices=tuple(ReplaySlice(part.logical_hash, part.physical_hash) for part in planned.slices),
                offset_interval=planned.offset_interval,
                watermarks=tuple(InputWatermark(mark.system_time, mark.event_time) for mark in planned.watermarks),
            )
            for planned, given in zip(inputs, request.inputs, strict=True)
        ),
        system_time=request.system_time,
        next_offset=request.next_offset,
        prev_checkpoint=view.prev_checkpoint,
        prev_watermark=request.prev_watermark,
    )


def sign_record(key: PrivateKey, record: ReplayRecord) -> bytes:
    """Sign a record with the dataset's key."""
    return sign_replay_record(key.seed, record)


def check_record(raw: bytes, block: Block, dataset_id: DatasetId, before: DatasetView | None) -> ReplayRecord:
    """Check that a record that came with a block is signed by the dataset's key and describes that block.

    Args:
        raw: Untrusted.
        block: What it came with.
        dataset_id: Whose chain.
        before: What is in force before the block, None where it is the first.

    Raises:
        MalformedError, RejectedError: It is not, or does not.
    """
    signed = decode_replay_record(raw)
    if signed.signer != DidKey(dataset_id.public_key):
        raise RejectedError(
            "REPLAY-5 signed-by-the-dataset-key",
            sequence_number=block.sequence_number,
            expected=DidKey(dataset_id.public_key),
            found=signed.signer,
        )
    check_record_describes(signed.record, block, dataset_id)
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


def check_record_inputs(record: ReplayRecord, inputs: Sequence[PlannedInput], sequence_number: int) -> None:
    """Check that a record names the slices that the step reads from the copies held here (REPLAY-7).

    Raises:
        RejectedError: It names others.
    """
    for said, planned in zip(record.inputs, inputs, strict=True):
        held = tuple(ReplaySlice(part.logical_hash, part.physical_hash) for part in planned.slices)
        if said.slices != held:
            raise RejectedError(
                f"REPLAY-7 slices-that-are-held (input {said.dataset_id})",
                sequence_number=sequence_number,
                expected=", ".join(str(part.physical_hash) for part in held) or "none",
                found=", ".join(str(part.physical_hash) for part in said.slices) or "none",
            )


def identity_of(engine: Engine) -> EngineIdentity:
    """Name an engine by its contents."""
    return EngineIdentity(engine.name, engine.version, engine.digest())
