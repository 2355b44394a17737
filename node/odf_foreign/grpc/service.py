"""The gRPC service ``engine.Engine``: both calls, and how errors are told.

A request that no sound caller makes ends with a gRPC status: INVALID_ARGUMENT if it cannot be read, PERMISSION_DENIED
if it names a file it must not. Everything else is an answer of the contract.

Source: ODF engine.proto; clauses GRPC-1 to GRPC-10 of ``spec/plug-ins/engine-grpc.md``.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pyarrow.parquet as pq

from odf_engines import contract
from odf_engines.contract import EngineError, InvalidQueryError, NotReproducibleError, TransformResponse
from odf_engines.engine import EngineSession
from odf_foreign.grpc.carrier import unwrap, wrap
from odf_foreign.grpc.folders import ForbiddenPathError, SharedFolders, hand_over
from odf_foreign.grpc.pool import OnEnd, SessionPool
from odf_foreign.grpc.requests import query_request_of, transform_request_of
from odf_protocol.engine_messages import (
    MAX_REQUEST_SIZE_BYTES,
    RawQueryRequest,
    RawQueryResponseInternalError,
    RawQueryResponseInvalidQuery,
    RawQueryResponseRoot,
    RawQueryResponseSuccess,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseRoot,
    TransformResponseSuccess,
    WireTransformRequest,
    decode_request,
)
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import TransformSql
from odf_protocol.wire.encoder import encode_root

SERVICE = "engine.Engine"

_CARRIER_BYTES = 16  # tag and length around a request
_MAX_WAITING = 16  # guess: callers that wait while one is answered; more are told to come again


class EngineService:
    """Answers requests; every method may be called from any thread.

    Args:
        pool: Has the session.
        folders: Files that requests may name.
    """

    def __init__(self, pool: SessionPool, folders: SharedFolders) -> None:
        self._pool = pool
        self._folders = folders

    def transform(self, raw: bytes, when_gone: OnEnd) -> TransformResponseRoot:
        """Run one step and put its rows where the caller wants them.

        Raises:
            MalformedError, UnsupportedError, ForbiddenPathError: What a sound caller does not ask.
        """
        message = decode_request(WireTransformRequest, raw)
        target = self._folders.get_output(message.new_data_path)
        try:
            self._check_engine(message.transform)
            request = transform_request_of(message, self._folders, self._pool.limits)
            response = self._pool.ask(
                request.dataset_id, when_gone, lambda session: _transform(session, request, target)
            )
            # State of maps is none, so the checkpoint's path stays untouched.
            return TransformResponseRoot(
                value=TransformResponseSuccess(
                    new_offset_interval=response.offset_interval, new_watermark=response.watermark
                )
            )
        except (InvalidQueryError, NotReproducibleError) as error:
            return TransformResponseRoot(value=TransformResponseInvalidQuery(message=str(error)))
        except (EngineError, OSError) as error:
            return TransformResponseRoot(
                value=TransformResponseInternalError(message=str(error), backtrace=_log_of(error))
            )

    def raw_query(self, raw: bytes, when_gone: OnEnd) -> RawQueryResponseRoot:
        """Answer a query over plain files.

        Raises:
            MalformedError, UnsupportedError, ForbiddenPathError: What a sound caller does not ask.
        """
        message = decode_request(RawQueryRequest, raw)
        target = self._folders.get_output(message.output_data_path)
        try:
            self._check_engine(message.transform)
            request = query_request_of(message, self._folders, self._pool.limits)
            # Nothing says whose data this is, so nobody's session is used again for it.
            rows = self._pool.ask(object(), when_gone, lambda session: _query(session, request, target))
            return RawQueryResponseRoot(value=RawQueryResponseSuccess(num_records=rows))
        except (InvalidQueryError, NotReproducibleError) as error:
            return RawQueryResponseRoot(value=RawQueryResponseInvalidQuery(message=str(error)))
        except (EngineError, OSError) as error:
            return RawQueryResponseRoot(
                value=RawQueryResponseInternalError(message=str(error), backtrace=_log_of(error))
            )

    def _check_engine(self, transform: TransformSql) -> None:
        name = self._pool.engine.name
        if transform.engine.lower() != name:
            raise InvalidQueryError(f"the query is for engine {transform.engine}, and this one is {name}")


def make_server(service: EngineService, address: str, port: int) -> tuple[grpc.Server, int]:
    """Bind a server without encryption, as the contract has it; it answers after ``start``.

    Returns:
        The server, and the port, which matters if 0 was asked for.

    Raises:
        OSError: The address is taken or not ours.
    """
    server = grpc.server(
        ThreadPoolExecutor(max_workers=_MAX_WAITING, thread_name_prefix="engine call"),
        maximum_concurrent_rpcs=_MAX_WAITING,
        options=[
            ("grpc.max_receive_message_length", MAX_REQUEST_SIZE_BYTES + _CARRIER_BYTES),
            ("grpc.so_reuseport", 0),
        ],
    )
    calls = {
        "ExecuteRawQuery": _handler(service.raw_query),
        "ExecuteTransform": _handler(service.transform),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, calls),))
    try:
        return server, server.add_insecure_port(f"{address}:{port}")
    except RuntimeError as error:
        raise OSError(f"cannot listen at {address}:{port}") from error


def _handler(answer: Callable[[bytes, OnEnd], Any]) -> Any:
    def call(message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            root = answer(unwrap(message), context.add_callback)
        except ForbiddenPathError as error:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
        except (MalformedError, UnsupportedError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        else:
            yield wrap(encode_root(root))

    # Without codecs of its own, gRPC hands over bytes as they came.
    return grpc.unary_stream_rpc_method_handler(call)


def _transform(session: EngineSession, request: contract.TransformRequest, target: Path) -> TransformResponse:
    response = session.transform(request)
    if response.data_path is None:
        _write_schema(response.schema, target)
    else:
        hand_over(response.data_path, target)
    return response


def _query(session: EngineSession, request: contract.QueryRequest, target: Path) -> int:
    response = session.query(request)
    hand_over(response.result_path, target)
    return response.rows


def _write_schema(schema: Any, target: Path) -> None:
    """Write a file without rows: how the caller learns the columns of a first step that had none."""
    with target.open("xb") as file:
        pq.write_table(schema.empty_table(), file, version="2.6", store_schema=True)


def _log_of(error: Exception) -> str | None:
    return getattr(error, "log", "") or None
