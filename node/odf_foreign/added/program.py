"""The engine's own program inside the sandbox: started, waited for, and asked over its port.

Source: clauses ADDED-6 to ADDED-8 in ``spec/plug-ins/foreign.md``.
"""

import contextlib
import socket
import subprocess
import time
from typing import Any

import grpc

from odf_engines.errors import EngineFailureError
from odf_engines.progress import report_count
from odf_foreign.added.description import EngineStart
from odf_foreign.grpc.carrier import unwrap, wrap
from odf_protocol.engine_messages import (
    MAX_REQUEST_SIZE_BYTES,
    TransformResponse,
    TransformResponseProgress,
    TransformResponseRoot,
    WireTransformRequest,
)
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.encoder import encode_root

_TRANSFORM = "/engine.Engine/ExecuteTransform"
_APPEAR_S = 120.0  # guess: Flink needs a minute on a busy machine; the host waits for 180 s
_LOOK_S = 0.02
_GREETING_S = 30.0  # guess: between a port that is open and a server that speaks
_END_S = 1.0  # guess: on a busy machine
_ANSWER_BYTES = 1024 * 1024  # guess: a backtrace has some kilobytes
_USUAL = {"HOME": "/scratch", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp", "TZ": "UTC"}  # noqa: S108 - inside the sandbox


class EngineProgram:
    """A running engine.

    Args:
        start: How it is started.

    Raises:
        EngineFailureError: It cannot be started.
    """

    def __init__(self, start: EngineStart) -> None:
        self._start = start
        environment = _USUAL | dict(word.split("=", 1) for word in start.environment)
        try:
            # What it prints goes to the log, with what we print.
            self._process = subprocess.Popen(
                start.command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, cwd=start.folder, env=environment,
            )  # fmt: skip
        except OSError as error:
            raise EngineFailureError(f"its program {start.command[0]} cannot be started: {error.strerror}") from error
        self._channel: Any = None

    def wait_until_it_answers(self) -> None:
        """Wait for the port, and for a server behind it.

        Raises:
            EngineFailureError: The program ended, or nothing answers for too long.
        """
        where = f"127.0.0.1:{self._start.port}"
        deadline = time.monotonic() + _APPEAR_S
        while not self._is_open():
            if (code := self._process.poll()) is not None:
                raise EngineFailureError(f"its program ended with code {code} before it answered at {where}")
            if time.monotonic() > deadline:
                raise EngineFailureError(f"its program did not answer at {where} within {_APPEAR_S:g} s")
            time.sleep(_LOOK_S)
        options = [("grpc.max_receive_message_length", _ANSWER_BYTES), ("grpc.enable_http_proxy", 0)]
        self._channel = grpc.insecure_channel(where, options=[*options, ("grpc.max_send_message_length", -1)])
        try:
            grpc.channel_ready_future(self._channel).result(timeout=_GREETING_S)
        except grpc.FutureTimeoutError as error:
            raise EngineFailureError(f"what listens at {where} does not speak gRPC") from error

    def transform(self, request: WireTransformRequest) -> TransformResponse:
        """Run a step and return its last answer; progress is how often the engine said before that it works.

        Args:
            request: The step.

        Raises:
            EngineFailureError: There is none, or more than one, or it cannot be read.
        """
        raw = encode_root(request)
        if len(raw) > MAX_REQUEST_SIZE_BYTES:
            raise EngineFailureError(f"a request of {len(raw)} bytes is more than the {MAX_REQUEST_SIZE_BYTES} allowed")
        last: TransformResponse | None = None
        stated = 0
        try:
            for message in self._channel.unary_stream(_TRANSFORM)(wrap(raw)):
                if last is not None:
                    raise EngineFailureError("it answered one request twice")
                answer = Decoder(unwrap(message)).decode_root(TransformResponseRoot).value
                if not isinstance(answer, TransformResponseProgress):
                    last = answer
                    continue
                stated += 1
                report_count(stated)
        except grpc.RpcError as error:
            raise EngineFailureError(self._explain(error)) from error
        except (MalformedError, UnsupportedError) as error:
            raise EngineFailureError(f"its answer cannot be read: {error}") from error
        if last is None:
            raise EngineFailureError("it ended the conversation without an answer")
        return last

    def _is_open(self) -> bool:
        with socket.socket(socket.AF_INET) as line:
            line.settimeout(_GREETING_S)
            return line.connect_ex(("127.0.0.1", self._start.port)) == 0

    def _explain(self, error: Any) -> str:
        # Its line may break a moment before it has ended.
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=_END_S)
            return f"its program ended with code {code} in the middle of a request"
        return f"it answered with status {error.code().name}: {error.details()}"[:2000]
