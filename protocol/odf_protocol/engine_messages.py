"""What a node and an engine say to each other in ODF's own engine contract.

Requests are the table itself; answers sit in a root table around a union, whose last three members end a stream.
All of it is declared as events are, so the codec of blocks reads and writes these too.

Source: ODF "Engine contract"; clauses GRPC-1 to GRPC-4 of ``spec/plug-ins/engine-grpc.md``.
"""

from dataclasses import dataclass
from typing import Annotated, TypeVar

from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import OffsetInterval
from odf_protocol.events.declaration import U64, Union
from odf_protocol.events.transform import Transform
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.decoder import Decoder

# guess: a first step over 65,536 slices, with a path of 100 characters each, has 7 MB.
MAX_REQUEST_SIZE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetVocabulary:
    """Names of the four system columns; an absent one is the usual one."""

    offset_column: str | None = None
    operation_type_column: str | None = None
    system_time_column: str | None = None
    event_time_column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireWatermark:
    """A watermark that a block of an input stated, and the system time of that block."""

    system_time: Timestamp
    event_time: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryRequest:
    """A query over files that are no dataset yet, such as a preprocess step.

    Attributes:
        input_data_paths: Parquet files, together the table ``input``.
        transform: The query.
        output_data_path: Where its result shall be; does not exist yet.
    """

    input_data_paths: tuple[str, ...]
    transform: Transform
    output_data_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryResponseProgress:
    """Work goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryResponseSuccess:
    """The result is where it shall be; ``num_records`` is the number of its rows."""

    num_records: U64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryResponseInvalidQuery:
    """The query is at fault."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryResponseInternalError:
    """The engine is at fault."""

    message: str
    backtrace: str | None = None


RawQueryResponse = Annotated[
    RawQueryResponseProgress | RawQueryResponseSuccess | RawQueryResponseInvalidQuery | RawQueryResponseInternalError,
    Union("RawQueryResponse"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryResponseRoot:
    """One message of the answer to a ``RawQueryRequest``."""

    value: RawQueryResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRequestInput:
    """What one input contributes to a step.

    Attributes:
        dataset_id: The input.
        dataset_alias: What the caller calls it.
        query_alias: What the query calls it.
        vocab: Names of its system columns.
        offset_interval: Rows to read, None for none.
        data_paths: Parquet files with these rows, oldest first.
        schema_file: A Parquet file without rows, with the schema of the input.
        explicit_watermarks: Every watermark that its blocks in the step stated, oldest first.
    """

    dataset_id: DatasetId
    dataset_alias: str
    query_alias: str
    vocab: DatasetVocabulary
    offset_interval: OffsetInterval | None = None
    data_paths: tuple[str, ...] = ()
    schema_file: str
    explicit_watermarks: tuple[WireWatermark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTransformRequest:
    """One step of a derivative.

    Attributes:
        dataset_id: The derivative.
        dataset_alias: What the caller calls it.
        system_time: Of the block to be.
        vocab: Names of its system columns.
        transform: The query.
        query_inputs: In the order of SetTransform.
        next_offset: Of the first new row.
        prev_checkpoint_path: State that the step before left.
        new_checkpoint_path: Where state for the next step shall be; untouched if there is none.
        new_data_path: Where new rows shall be; does not exist yet.
    """

    dataset_id: DatasetId
    dataset_alias: str
    system_time: Timestamp
    vocab: DatasetVocabulary
    transform: Transform
    query_inputs: tuple[TransformRequestInput, ...]
    next_offset: U64 = 0
    prev_checkpoint_path: str | None = None
    new_checkpoint_path: str
    new_data_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformResponseProgress:
    """Work goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformResponseSuccess:
    """The step is done; without an interval there are no new rows, and the data file, if any, only has the schema."""

    new_offset_interval: OffsetInterval | None = None
    new_watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformResponseInvalidQuery:
    """The query is at fault."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformResponseInternalError:
    """The engine is at fault."""

    message: str
    backtrace: str | None = None


TransformResponse = Annotated[
    TransformResponseProgress
    | TransformResponseSuccess
    | TransformResponseInvalidQuery
    | TransformResponseInternalError,
    Union("TransformResponse"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformResponseRoot:
    """One message of the answer to a ``WireTransformRequest``."""

    value: TransformResponse


_Request = TypeVar("_Request", RawQueryRequest, WireTransformRequest)


def decode_request(request: type[_Request], raw: bytes) -> _Request:
    """Decode untrusted bytes.

    Raises:
        MalformedError: Too many bytes, or they do not follow the format.
        UnsupportedError: Fields or members that we do not know.
    """
    if len(raw) > MAX_REQUEST_SIZE_BYTES:
        raise MalformedError("request", expected=f"at most {MAX_REQUEST_SIZE_BYTES} bytes", found=len(raw))
    return Decoder(raw).decode_root(request)
