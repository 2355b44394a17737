"""Entrances of the Smart Transfer Protocol: messages and batches of blocks."""

import gzip
from collections.abc import Sequence
from functools import cache

from fuzz.target import Target
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.multihash import Multihash
from odf_smart_protocol.batches import decode_batch
from odf_smart_protocol.messages import (
    Answer,
    BlocksResponse,
    ObjectsPullRequest,
    ObjectsPullResponse,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PullResponse,
    PushBlocks,
    PushProgress,
    SmartPullRequest,
    SmartPushRequest,
    decode_message,
    encode_message,
)
from support.smart_recordings import PULLS, PUSHES, read_recordings

__all__ = ["SMART_TARGETS"]

KINDS = (
    Answer,
    BlocksResponse,
    ObjectsPullRequest,
    ObjectsPullResponse,
    ObjectsPushRequest,
    ObjectsPushResponse,
    SmartPullRequest,
    PullResponse,
    PushBlocks,
    PushProgress,
    SmartPushRequest,
)


@cache
def _texts() -> tuple[bytes, ...]:
    return tuple(text for name in (*PULLS, *PUSHES) for _, text in read_recordings()[name].stated)


@cache
def _tars() -> Sequence[bytes]:
    found = []
    for text in _texts():
        for kind in (BlocksResponse, PushBlocks):
            try:
                message = decode_message(text, kind)
            except MalformedError:
                continue
            batch = message.blocks if isinstance(message, BlocksResponse) else message.new_blocks
            found.append(gzip.decompress(batch.payload_bytes()))
    return found


def _read_message(data: bytes) -> None:
    """Read as every kind: what is read says the same when it is written and read again."""
    errors: list[Exception] = []
    for kind in KINDS:
        try:
            message = decode_message(data, kind)
        except MalformedError as error:
            errors.append(error)
            continue
        again = encode_message(message)
        assert encode_message(decode_message(again, kind)) == again
        for batch in (getattr(message, "blocks", None), getattr(message, "new_blocks", None)):
            if batch is not None:
                try:
                    batch.payload_bytes()
                except MalformedError as error:
                    errors.append(error)
        if isinstance(message, Answer | PullResponse | ObjectsPushResponse) and message.problem is not None:
            assert len(message.problem.explain()) < 20_000
    if errors:
        raise errors[len(data) % len(errors)]


def _read_batch(data: bytes) -> None:
    """Read as the archive itself: behind the compression, which mutations would only break."""
    payload = gzip.compress(data, compresslevel=1)
    for count in (1, 6):
        for block_hash, raw in decode_batch(payload, num_blocks=count):
            assert Multihash.of_sha3_256(raw) == block_hash


SMART_TARGETS = (
    Target("smart-message", _read_message, (MalformedError, UnsupportedError), _texts),
    Target("smart-batch", _read_batch, (MalformedError, UnsupportedError), _tars),
)
