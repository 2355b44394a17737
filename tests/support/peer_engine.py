"""The engine of another ODF implementation, asked directly over its own contract; ``ODF_PEER`` names its folder.

Its port is fixed, and somebody else on this machine may use it. So it runs in a network of its own, together with the
program below, which passes on what it reads: one line of hexadecimal digits each way.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_protocol.engine_messages import TransformResponseRoot, WireTransformRequest
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.encoder import encode_root

PORT = 2884
APPEAR_S = 60.0
ANSWER_S = 120.0


class PeerEngine:
    """A running engine; it reads and writes the files that requests name."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def transform(self, request: WireTransformRequest) -> Any:
        """Run a step; give the member of the union that was answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(encode_root(request).hex() + "\n")
        self._process.stdin.flush()
        answer = bytes.fromhex(self._process.stdout.readline())
        return Decoder(answer).decode_root(TransformResponseRoot).value


@contextmanager
def running_peer_engine() -> Iterator[PeerEngine]:
    """Run the peer's DataFusion engine for as long as the block lasts."""
    command = [
        *(str(find_bubblewrap().path), "--unshare-net", "--die-with-parent", "--bind", "/", "/"),
        *(
            "--dev-bind",
            "/dev",
            "/dev",
            sys.executable,
            __file__,
            str(Path(os.environ["ODF_PEER"], "engine-datafusion")),
        ),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "RUST_LOG": "error"},
    )  # fmt: skip
    try:
        yield PeerEngine(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=APPEAR_S)
        assert process.stdout is not None
        process.stdout.close()


def main(program: str) -> None:
    """Start the engine, and pass on requests until the input ends."""
    import grpc

    from odf_foreign.grpc.carrier import unwrap, wrap
    from odf_foreign.grpc.service import SERVICE

    engine = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{PORT}") as channel:
            grpc.channel_ready_future(channel).result(timeout=APPEAR_S)
            ask = channel.unary_stream(f"/{SERVICE}/ExecuteTransform")
            for line in sys.stdin:
                *_, answer = ask(wrap(bytes.fromhex(line)), timeout=ANSWER_S)
                print(unwrap(answer).hex(), flush=True)
    finally:
        engine.kill()
        engine.wait()


if __name__ == "__main__":
    main(sys.argv[1])
