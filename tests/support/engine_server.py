"""A real engine server in a real process, and requests to it over real gRPC."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from odf_foreign.grpc.carrier import unwrap, wrap
from odf_foreign.grpc.service import SERVICE
from odf_protocol.did import DatasetId
from odf_protocol.engine_messages import (
    DatasetVocabulary,
    RawQueryRequest,
    RawQueryResponseRoot,
    TransformRequestInput,
    TransformResponseRoot,
    WireTransformRequest,
    WireWatermark,
)
from odf_protocol.events import OffsetInterval
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.encoder import encode_root
from support.transforms import SYSTEM_TIME, transform_sql, write_orders

ROWS = [
    (0, 0, 5_000, 1, "new", 10.0),
    (1, 0, 5_001, 2, "new", 20.5),
    (2, 2, 5_000, 1, "new", 10.0),
    (3, 3, 5_000, 1, "paid", 10.0),
]


@dataclass(frozen=True)
class EngineServer:
    """A server, its folders, and a channel to it."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    channel: grpc.Channel

    def call(self, method: str, message: bytes, timeout_s: float = 400) -> list[bytes]:
        """Send bytes as they are; give the messages of the answer as they came."""
        return list(self.channel.unary_stream(f"/{SERVICE}/{method}")(message, timeout=timeout_s))

    def transform(self, request: WireTransformRequest) -> Any:
        """Run a step; give the member of the union that was answered."""
        (answer,) = self.call("ExecuteTransform", wrap(encode_root(request)))
        return Decoder(unwrap(answer)).decode_root(TransformResponseRoot).value

    def raw_query(self, request: RawQueryRequest) -> Any:
        """Run a query; give the member of the union that was answered."""
        (answer,) = self.call("ExecuteRawQuery", wrap(encode_root(request)))
        return Decoder(unwrap(answer)).decode_root(RawQueryResponseRoot).value

    def request(
        self,
        query: str,
        output: str,
        *,
        interval: tuple[int, int] | None = (0, 3),
        data_paths: Sequence[str] | None = None,
        dataset: int = 1,
        engine: str = "spark",
    ) -> WireTransformRequest:
        """A step over the four rows of ``ROWS``."""
        shown = self.folder / "in"
        transform = transform_sql(query)
        return WireTransformRequest(
            dataset_id=DatasetId(bytes([dataset]) * 32),
            dataset_alias="someone/derivative",
            system_time=SYSTEM_TIME,
            vocab=DatasetVocabulary(),
            transform=type(transform)(engine=engine, queries=transform.queries),
            query_inputs=(
                TransformRequestInput(
                    dataset_id=DatasetId(b"\xee" * 32),
                    dataset_alias="someone/orders",
                    query_alias="orders",
                    vocab=DatasetVocabulary(offset_column="offset", event_time_column="event_time"),
                    offset_interval=None if interval is None else OffsetInterval(start=interval[0], end=interval[1]),
                    data_paths=(str(shown / "orders.parquet"),) if data_paths is None else tuple(data_paths),
                    schema_file=str(shown / "schema.parquet"),
                    explicit_watermarks=(
                        WireWatermark(system_time=SYSTEM_TIME, event_time=Timestamp.from_unix_ms(5_001)),
                    ),
                ),
            ),
            next_offset=10,
            new_checkpoint_path=str(self.folder / "out" / "checkpoint"),
            new_data_path=str(self.folder / "out" / output),
        )


@contextmanager
def running_server(folder: Path, *, around: Sequence[str] = (), options: Sequence[str] = ()) -> Iterator[EngineServer]:
    """Run ``python -m odf_foreign.grpc`` over the folders ``in`` and ``out`` below ``folder``; end it with SIGTERM."""
    for name in ("in", "out", "work"):
        (folder / name).mkdir()
    write_orders(folder / "in" / "orders.parquet", ROWS)
    write_orders(folder / "in" / "schema.parquet", [])
    ready, log = folder / "ready", folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                *around,
                *(sys.executable, "-m", "odf_foreign.grpc", "--port", "0", "--ready-file", str(ready)),
                *("--read", str(folder / "in"), "--write", str(folder / "out"), "--workspace", str(folder / "work")),
                *options,
            ],
            stderr=stream,
        )
    try:
        deadline = time.monotonic() + 240
        while not ready.exists() or not ready.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        with grpc.insecure_channel(f"127.0.0.1:{ready.read_text()}") as channel:
            yield EngineServer(process, folder, channel)
    finally:
        process.terminate()
        code = process.wait(timeout=240)
    # What stands around the server may end by the signal itself.
    assert code == 0 or around, log.read_text()
