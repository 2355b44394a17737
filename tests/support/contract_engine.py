"""An engine that answers ODF's gRPC contract, in Python, as a program that a node can add; some of them lie.

``write_engine`` writes the program: this file, with what it does at its top. It runs inside the sandbox on the Python
that is there for the node's own part. Its query is ignored: it passes the rows of its first input on.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

BEHAVIOUR = "honest"
PORT = 2884

INTERPRETER = "#!/runtime/python/bin/python3 -IS"
INSTANT_MS = 1000


def write_engine(path: Path, behaviour: str = "honest", *, interpreter: str = INTERPRETER) -> Path:
    """Write the program; see ``main`` for how it can behave."""
    text = Path(__file__).read_text().replace('BEHAVIOUR = "honest"', f'BEHAVIOUR = "{behaviour}"', 1)
    path.write_text(f"{interpreter}\n{text}")
    path.chmod(0o700)
    return path


def main() -> None:
    """Serve, or do something else first."""
    if "LD_LIBRARY_PATH" not in os.environ:
        # Whatever other Python this machine has: the library of this one.
        os.environ["LD_LIBRARY_PATH"] = "/runtime/python/lib"
        python = "/runtime/python/bin/python3"
        os.execv(python, [python, "-IS", *sys.argv])
    sys.path[:0] = ["/runtime/ours", "/runtime/site"]
    if BEHAVIOUR == "never-listens":
        time.sleep(3600)
    if BEHAVIOUR == "ends-at-once":
        print("no licence found", file=sys.stderr, flush=True)
        raise SystemExit(3)
    serve()


def serve() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    handlers = {"ExecuteTransform": grpc.unary_stream_rpc_method_handler(answer)}
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("engine.Engine", handlers),))
    server.add_insecure_port(f"127.0.0.1:{PORT}")
    server.start()
    server.wait_for_termination()


def answer(message: bytes, context: Any) -> Any:
    from odf_foreign.grpc.carrier import unwrap, wrap
    from odf_protocol.engine_messages import (
        TransformResponseInternalError,
        TransformResponseInvalidQuery,
        TransformResponseProgress,
        TransformResponseRoot,
        WireTransformRequest,
        decode_request,
    )
    from odf_protocol.wire.encoder import encode_root

    def on_progress(value: Any) -> bytes:
        return wrap(encode_root(TransformResponseRoot(value=value)))

    request = decode_request(WireTransformRequest, unwrap(message))
    query = request.transform.query or request.transform.queries[-1].query
    if query == "NONSENSE":
        yield on_progress(TransformResponseInvalidQuery(message="NONSENSE is no query"))
        return
    has_rows = request.query_inputs[0].offset_interval is not None
    yield on_progress(TransformResponseProgress())
    if has_rows:  # a query that is only tried gets an honest answer
        yield from misbehave(on_progress, wrap, query)
    if has_rows and BEHAVIOUR == "own-fault":
        yield on_progress(TransformResponseInternalError(message="out of ideas", backtrace="line 1\nline 2"))
        return
    if has_rows and BEHAVIOUR in {"never-answers", "spies"}:
        return
    yield on_progress(transform(request))
    if has_rows and BEHAVIOUR == "answers-twice":
        yield on_progress(transform(request, suffix="-again"))


def spy(port: str) -> str:
    """Say as JSON what an engine sees, can write to, and can reach."""
    import json
    import socket

    writable = []
    for folder in (
        "/",
        "/etc",
        "/opt/engine",
        "/opt/engine/in",
        "/opt/engine/out",
        "/runtime",
        "/usr",
        "/scratch",
        "/tmp",
    ):
        try:
            (Path(folder) / "written").write_text("x")
            writable.append(folder)
        except OSError:
            continue
    reached = []
    for address in ("127.0.0.1", "192.0.2.1", "8.8.8.8"):
        with socket.socket() as line:
            line.settimeout(2)
            if line.connect_ex((address, int(port))) == 0:
                reached.append(address)
    seen = {
        "top": sorted(path.name for path in Path("/").iterdir()),
        "writable": writable,
        "reached": reached,
        "user": os.getuid(),
        "environment": sorted(os.environ),
        "processes": len(list(Path("/proc").glob("[0-9]*"))),
        "interfaces": [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]],
    }
    return json.dumps(seen)


def misbehave(on_progress: Any, wrap: Any, query: str) -> Any:
    from odf_protocol.engine_messages import TransformResponseProgress

    if BEHAVIOUR == "hangs":
        time.sleep(3600)
    for _ in range(25 if BEHAVIOUR == "works-slowly" else 0):
        yield on_progress(TransformResponseProgress())
        time.sleep(0.1)
    while BEHAVIOUR == "progress-for-ever":
        yield on_progress(TransformResponseProgress())
    while BEHAVIOUR == "floods-the-log":
        os.write(2, b"x" * 65536)
    while BEHAVIOUR == "forks":
        if os.fork() == 0:
            time.sleep(3600)
    if BEHAVIOUR == "dies":
        os._exit(7)
    if BEHAVIOUR == "nonsense":
        yield wrap(b"\xff" * 40)
    if BEHAVIOUR == "huge-answer":
        yield wrap(b"\0" * (8 * 1024 * 1024))
    if BEHAVIOUR == "spies":
        from odf_protocol.engine_messages import TransformResponseInternalError

        yield on_progress(TransformResponseInternalError(message=spy(query)))
    number = 0
    while BEHAVIOUR == "fills-the-disk":
        number += 1
        Path(f"/opt/engine/out/filler-{number}").write_bytes(b"x" * 1024 * 1024)


def transform(request: Any, suffix: str = "") -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from odf_protocol.engine_messages import TransformResponseSuccess
    from odf_protocol.events import OffsetInterval

    source = request.query_inputs[0]
    schema = pq.read_schema(source.schema_file).remove_metadata()
    rows = schema.empty_table()
    interval = source.offset_interval
    if interval is not None:
        rows = pa.concat_tables([pq.read_table(path).cast(schema) for path in source.data_paths])
        offset = rows.column(source.vocab.offset_column)
        rows = rows.filter(pc.and_(pc.greater_equal(offset, interval.start), pc.less_equal(offset, interval.end)))
    count, first = rows.num_rows, request.next_offset
    lies = BEHAVIOUR if interval is not None else ""
    shift = {"wrong-offsets-in-file": 1}.get(lies, 0)
    offsets = pa.array(range(first + shift, first + shift + count), pa.int64())
    instant = schema.field(source.vocab.system_time_column).type
    reported = request.system_time.unix_ms + (INSTANT_MS if lies == "wrong-system-time" else 0)
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= {request.vocab.offset_column: offsets}
    columns |= {request.vocab.system_time_column: pa.array([reported] * count, pa.int64()).cast(instant)}
    if lies == "wrong-operations":
        columns[request.vocab.operation_type_column] = pa.array([9] * count, pa.int32())
    made = pa.table(columns, schema=schema)
    if lies == "wrong-rows":
        last = made.column_names[-1]
        noise = pa.array([int(time.time_ns()) % 1_000_003] * count, pa.int64()).cast(schema.field(last).type)
        made = made.set_column(made.num_columns - 1, schema.field(last), noise)
    if lies == "another-result":
        last = made.column_names[-1]
        made = made.set_column(made.num_columns - 1, schema.field(last), pc.add(made.column(last), 1))
    if lies == "fewer-rows":
        made = made.slice(0, count - 1)
    if lies == "wrong-schema":
        made = made.rename_columns([*made.column_names[:-1], "another"])
    if lies == "no-system-columns":
        made = made.select(made.column_names[4:])
    target = Path(request.new_data_path + suffix)
    if lies == "link-as-output":
        target.symlink_to(source.data_paths[0])
    elif lies == "no-parquet":
        target.write_bytes(b"PAR1 but nothing else")
    elif lies != "no-file":
        pq.write_table(made, target)
    if lies == "wrong-interval":
        first += 5
    watermark = max(
        (mark.event_time for each in request.query_inputs for mark in each.explicit_watermarks), default=None
    )
    return TransformResponseSuccess(
        new_offset_interval=OffsetInterval(start=first, end=first + count - 1) if count else None,
        new_watermark=watermark,
    )


if __name__ == "__main__":
    main()
