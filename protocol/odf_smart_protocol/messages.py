"""The messages, read with bounds and written as the other implementation writes them (SMART-3).

Messages have no type of their own: what is awaited decides what they are read as. Unknown fields are passed over, as
others do; a missing field that can be null is null.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.multihash import Multihash
from odf_smart_protocol.limits import (
    MAX_HEADER_CHARACTERS,
    MAX_MESSAGE_BYTES,
    MAX_READ_OBJECTS_PER_MESSAGE,
    MAX_READ_PAYLOAD_BYTES,
    MAX_SMALL_MESSAGE_BYTES,
    MAX_URL_CHARACTERS,
    MAX_URL_HEADERS,
)
from odf_smart_protocol.problems import Empty, HashText, Internal, Message, Text, TransferProblem

MEDIA_TYPE: Final = "application/tar+gzip"
ENCODING: Final = "raw"

Count32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
# The network allows up to 2^64 - 1; no sum of sizes comes near half of it.
Count64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
ObjectType = Literal["DataSlice", "Checkpoint"]
Visibility = Literal["Private", "Public"]


class TransferPlan(Message, frozen=True, kw_only=True):
    """How much there is: all blocks of the interval, and the objects that they name, whether known or not."""

    num_blocks: Count32
    num_objects: Count32
    num_records: Count64
    bytes_in_raw_blocks: Count64
    bytes_in_raw_objects: Count64


class BlocksBatch(Message, frozen=True, kw_only=True):
    """Compressed blocks. ``payload`` is the JSON text of an array of bytes; ``payload_bytes`` reads it."""

    num_blocks: Count32
    media_type: Text
    encoding: Text
    payload: msgspec.Raw

    def __post_init__(self) -> None:
        if (self.media_type, self.encoding) != (MEDIA_TYPE, ENCODING):
            raise MalformedError(
                "batch of blocks", expected=f"{MEDIA_TYPE} {ENCODING}", found=f"{self.media_type} {self.encoding}"
            )

    @classmethod
    def of(cls, payload: bytes, num_blocks: int) -> "BlocksBatch":
        """Write a batch."""
        return cls(num_blocks=num_blocks, media_type=MEDIA_TYPE, encoding=ENCODING, payload=_array_of(payload))

    def payload_bytes(self) -> bytes:
        """Read the bytes out of their JSON text.

        Raises:
            MalformedError: Not an array of bytes, or too many.
        """
        return b"".join(_iter_array(bytes(self.payload)))


class ObjectFile(Message, frozen=True, kw_only=True):
    """An object as its block names it."""

    object_type: ObjectType
    physical_hash: HashText
    size: Count64

    def __post_init__(self) -> None:
        Multihash.parse(self.physical_hash)

    @property
    def hash(self) -> Multihash:
        """Its hash."""
        return Multihash.parse(self.physical_hash)


class Header(Message, frozen=True, kw_only=True):
    """A header to be sent with a transfer."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
    value: Annotated[str, msgspec.Meta(max_length=MAX_HEADER_CHARACTERS, pattern=r"^[\t\x20-\x7e\x80-\xff]*$")]


class TransferUrl(Message, frozen=True, kw_only=True):
    """Where an object is read from, or written to."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URL_CHARACTERS)]
    headers: Annotated[tuple[Header, ...], msgspec.Meta(max_length=MAX_URL_HEADERS)]
    expires_at: Text | None = None


class _Result(msgspec.Struct, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """``{"Ok": ...}`` or ``{"Err": ...}``; a problem without members is its name alone."""

    ok: Any = UNSET
    err: TransferProblem | str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.ok is UNSET) == (self.err is UNSET):
            raise MalformedError("answer", expected="'Ok' or 'Err'")

    @property
    def problem(self) -> TransferProblem | None:
        """Why not; None where it is fine."""
        if self.err is UNSET:
            return None
        if isinstance(self.err, str):
            return TransferProblem(internal=Internal(error_message=self.err))
        return self.err


class Answer(_Result, frozen=True, kw_only=True):
    """``{"Ok":{}}``, or why not."""

    ok: Empty | UnsetType = UNSET


class SmartPullRequest(Message, frozen=True, kw_only=True):
    """Which blocks: those after ``begin_after`` (None: from the Seed) up to ``stop_at`` (None: the head)."""

    begin_after: HashText | None = None
    stop_at: HashText | None = None
    force_update_if_diverged: bool

    def __post_init__(self) -> None:
        for text in (self.begin_after, self.stop_at):
            if text is not None:
                Multihash.parse(text)


class PullPlan(Message, frozen=True, kw_only=True):
    """What a pull would bring."""

    transfer_plan: TransferPlan


class PullResponse(_Result, frozen=True, kw_only=True):
    """The plan of a pull, or why there is none."""

    ok: PullPlan | UnsetType = UNSET


class BlocksResponse(Message, frozen=True, kw_only=True):
    """The blocks of a pull."""

    blocks: BlocksBatch


class ObjectsPullRequest(Message, frozen=True, kw_only=True):
    """Where can these be read?"""

    object_files: Annotated[tuple[ObjectFile, ...], msgspec.Meta(max_length=MAX_READ_OBJECTS_PER_MESSAGE)]


class PullStrategy(Message, frozen=True, kw_only=True):
    """Where one object can be read."""

    object_file: ObjectFile
    pull_strategy: Literal["HttpDownload"]
    download_from: TransferUrl


class ObjectsPullResponse(Message, frozen=True, kw_only=True):
    """Where they can be read, in the order of the question."""

    object_transfer_strategies: Annotated[
        tuple[PullStrategy, ...], msgspec.Meta(max_length=MAX_READ_OBJECTS_PER_MESSAGE)
    ]


class SmartPushRequest(Message, frozen=True, kw_only=True):
    """What will be pushed on top of ``current_head`` (None: the dataset is new)."""

    current_head: HashText | None = None
    transfer_plan: TransferPlan
    force_update_if_diverged: bool
    visibility_for_created_dataset: Visibility

    def __post_init__(self) -> None:
        if self.current_head is not None:
            Multihash.parse(self.current_head)


class PushBlocks(Message, frozen=True, kw_only=True):
    """The blocks of a push."""

    new_blocks: BlocksBatch


class ObjectsPushRequest(Message, frozen=True, kw_only=True):
    """Which of these are to be uploaded, and where? More will follow if ``is_truncated``."""

    object_files: Annotated[tuple[ObjectFile, ...], msgspec.Meta(max_length=MAX_READ_OBJECTS_PER_MESSAGE)]
    is_truncated: bool


class PushStrategy(Message, frozen=True, kw_only=True):
    """Where one object is to be uploaded, if it is not there already."""

    object_file: ObjectFile
    push_strategy: Literal["SkipUpload", "HttpUpload"]
    upload_to: TransferUrl | None = None


class PushStrategies(Message, frozen=True, kw_only=True):
    """Which are to be uploaded."""

    object_transfer_strategies: Annotated[
        tuple[PushStrategy, ...], msgspec.Meta(max_length=MAX_READ_OBJECTS_PER_MESSAGE)
    ]


class ObjectsPushResponse(_Result, frozen=True, kw_only=True):
    """Which are to be uploaded, or why the push ends."""

    ok: PushStrategies | UnsetType = UNSET


class _Uploaded(Message, frozen=True, kw_only=True):
    uploaded_objects_count: Count32


class Running(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Uploads go on."""

    running: _Uploaded

    @classmethod
    def of(cls, uploaded: int) -> "Running":
        """Say how many objects are there."""
        return cls(running=_Uploaded(uploaded_objects_count=uploaded))


class PushProgress(Message, frozen=True, kw_only=True):
    """How far the uploads are."""

    details: Literal["Complete"] | Running


_Kind = TypeVar("_Kind", bound=msgspec.Struct)
_LARGE: Final = (BlocksResponse, PushBlocks, ObjectsPullRequest, ObjectsPushRequest)
"""Messages with blocks, and those in which others name all objects of a chain at once."""
_LARGE_ANSWERS: Final = (ObjectsPullResponse, ObjectsPushResponse)


def decode_message(text: bytes, kind: type[_Kind]) -> _Kind:
    """Read the message that is awaited.

    Raises:
        MalformedError: Too large, or not such a message.
    """
    limit = MAX_MESSAGE_BYTES if issubclass(kind, (*_LARGE, *_LARGE_ANSWERS)) else MAX_SMALL_MESSAGE_BYTES
    if len(text) > limit:
        raise MalformedError(kind.__name__, expected=f"at most {limit} bytes", found=len(text))
    try:
        return msgspec.json.decode(text, type=kind)
    except OdfError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(kind.__name__, expected="a message of the protocol", found=str(error)) from error


def encode_message(message: msgspec.Struct) -> bytes:
    """Write a message: members in their order, no spaces."""
    return msgspec.json.encode(message)


_DECIMALS: Final = [str(number).encode() for number in range(256)]
_CHUNK_CHARACTERS: Final = 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_BYTES: Final = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0, le=255)]])


def _array_of(payload: bytes) -> msgspec.Raw:
    decimals = _DECIMALS
    # In pieces: a list with an element for each byte would be thirty times the payload.
    chunks = (payload[start : start + _CHUNK_BYTES] for start in range(0, len(payload), _CHUNK_BYTES))
    return msgspec.Raw(b"[" + b",".join(b",".join([decimals[byte] for byte in chunk]) for chunk in chunks) + b"]")


def _iter_array(text: bytes) -> Iterator[bytes]:
    """Read an array of bytes in pieces: as a list of numbers it would be thirty times its size."""
    text = text.strip()
    if not (text.startswith(b"[") and text.endswith(b"]")):
        raise MalformedError("payload", expected="an array of bytes", found=repr(text[:20]))
    left = MAX_READ_PAYLOAD_BYTES
    position, end = 1, len(text) - 1
    while position < end:
        stop = text.find(b",", min(position + _CHUNK_CHARACTERS, end), end)
        stop = end if stop < 0 else stop
        try:
            chunk = bytes(_BYTES.decode(b"[" + text[position:stop] + b"]"))
        except msgspec.DecodeError as error:
            raise MalformedError("payload", where=position, expected="bytes", found=str(error)) from error
        left -= len(chunk)
        if left < 0:
            raise MalformedError("payload", expected=f"at most {MAX_READ_PAYLOAD_BYTES} bytes", found="more")
        yield chunk
        position = stop + 1
