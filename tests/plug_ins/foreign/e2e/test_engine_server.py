"""Our engine behind ODF's own engine contract: clauses GRPC-1 to GRPC-11 of ``spec/plug-ins/engine-grpc.md``."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_foreign.grpc.carrier import wrap
from odf_protocol.engine_messages import (
    MAX_REQUEST_SIZE_BYTES,
    RawQueryRequest,
    RawQueryResponseInvalidQuery,
    RawQueryResponseSuccess,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseSuccess,
)
from odf_protocol.events import OffsetInterval
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.encoder import encode_root
from support.engine_server import EngineServer, running_server
from support.transforms import SYSTEM_TIME, transform_sql

pytestmark = pytest.mark.spark

MAP = "SELECT event_time, id * 10 AS tens FROM orders WHERE status = 'new'"
WATERMARK = Timestamp.from_unix_ms(5_001)


@pytest.fixture(scope="module")
def server(spark_engine, tmp_path_factory) -> Iterator[EngineServer]:
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running
    assert list((running.folder / "work").iterdir()) == []


def rejection(server: EngineServer, method: str, message: bytes) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        server.call(method, message)
    return caught.value.code(), caught.value.details()


def test_map_is_executed_after_a_caller_gave_up_and_its_rows_are_where_they_were_wanted(server):
    message = wrap(encode_root(server.request(MAP, "given-up", dataset=2)))
    with pytest.raises(grpc.RpcError) as caught:
        server.call("ExecuteTransform", message, timeout_s=0.3)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    answer = server.transform(server.request(MAP, "map"))
    assert answer == TransformResponseSuccess(
        new_offset_interval=OffsetInterval(start=10, end=12), new_watermark=WATERMARK
    )
    table = pq.read_table(server.folder / "out" / "map")
    assert table.column_names == ["offset", "op", "system_time", "event_time", "tens"]
    assert table.select([0, 1, 4]).to_pylist() == [
        {"offset": 10, "op": 0, "tens": 10},
        {"offset": 11, "op": 0, "tens": 20},
        {"offset": 12, "op": 1, "tens": 10},
    ]
    assert set(table.column("system_time").cast(pa.int64()).to_pylist()) == {SYSTEM_TIME.unix_ms}
    assert not (server.folder / "out" / "checkpoint").exists()


@pytest.mark.parametrize("more", [{"interval": None, "data_paths": ()}, {}], ids=["no-rows-in", "no-rows-out"])
def test_step_without_rows_leaves_a_file_with_the_schema(server, more, request):
    answer = server.transform(server.request(MAP + " AND id > 99", request.node.name, **more))
    assert answer == TransformResponseSuccess(new_offset_interval=None, new_watermark=WATERMARK)
    table = pq.read_table(server.folder / "out" / request.node.name)
    assert table.num_rows == 0
    assert table.column_names == ["offset", "op", "system_time", "event_time", "tens"]


@pytest.mark.parametrize(
    ("query", "engine", "message"),
    [
        pytest.param("SELECT nonsense FROM orders", "spark", "nonsense", id="unknown-column"),
        pytest.param("SELECT event_time, rand() AS r FROM orders", "spark", "cannot be re-executed", id="impure"),
        pytest.param("SELECT event_time, 1 / (id - 1) AS x FROM orders", "spark", "DIVIDE_BY_ZERO", id="value"),
        pytest.param(MAP, "flink", "this one is spark", id="other-engine"),
    ],
)
def test_fault_of_the_query_is_told_as_such_and_leaves_no_file(server, query, engine, message):
    answer = server.transform(server.request(query, "invalid", engine=engine))
    assert isinstance(answer, TransformResponseInvalidQuery)
    assert message in answer.message
    assert not (server.folder / "out" / "invalid").exists()


def test_file_that_is_no_slice_is_an_error_of_the_engine_and_the_next_request_is_answered(server):
    (server.folder / "in" / "broken.parquet").write_bytes(b"PAR1 but no more")
    broken = server.request(MAP, "broken", data_paths=[str(server.folder / "in" / "broken.parquet")])
    assert isinstance(server.transform(broken), TransformResponseInternalError | TransformResponseInvalidQuery)
    assert isinstance(server.transform(server.request(MAP, "after-broken")), TransformResponseSuccess)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("/etc/passwd", "not in a folder of inputs", id="elsewhere"),
        pytest.param("/nothing/there", "not in a folder of inputs", id="elsewhere-and-absent"),
        pytest.param("{in}/../ready", "without '..'", id="dots"),
        pytest.param("in/orders.parquet", "not an absolute path", id="relative"),
        pytest.param("{in}/link", "not in a folder of inputs", id="link-to-elsewhere"),
        pytest.param("{in}/absent", "no such plain file", id="absent"),
        pytest.param("{in}", "no such plain file", id="folder"),
        pytest.param("{in}/a\0b", "not a path", id="nul"),
        pytest.param("{in}/" + "x" * 5000, "not a path", id="long"),
    ],
)
def test_files_outside_the_shared_folders_are_not_read(server, path, reason):
    link = server.folder / "in" / "link"
    if not link.is_symlink():
        link.symlink_to("/etc/passwd")
    named = path.replace("{in}", str(server.folder / "in"))
    code, details = rejection(
        server, "ExecuteTransform", wrap(encode_root(server.request(MAP, "x", data_paths=[named])))
    )
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert reason in details


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("/tmp/engine-test-output", "not in a folder for outputs", id="elsewhere"),
        pytest.param("{in}/new", "not in a folder for outputs", id="among-inputs"),
        pytest.param("{out}/taken", "there is a file already", id="taken"),
        pytest.param("{out}/dangling", "there is a file already", id="dangling-link"),
        pytest.param("{out}/absent/x", "no such folder", id="absent-folder"),
    ],
)
def test_results_go_nowhere_else_and_replace_nothing(server, path, reason):
    out = server.folder / "out"
    (out / "taken").write_text("mine")
    if not (out / "dangling").is_symlink():
        (out / "dangling").symlink_to("/tmp/engine-test-output")
    target = path.replace("{in}", str(server.folder / "in")).replace("{out}", str(out))
    query = RawQueryRequest(
        input_data_paths=(str(server.folder / "in" / "orders.parquet"),),
        transform=transform_sql("SELECT * FROM input"),
        output_data_path=target,
    )
    code, details = rejection(server, "ExecuteRawQuery", wrap(encode_root(query)))
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert reason in details
    assert (out / "taken").read_text() == "mine"
    assert not Path("/tmp/engine-test-output").exists()


@pytest.mark.parametrize("method", ["ExecuteTransform", "ExecuteRawQuery"])
@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x0a\xff\xff\xff\xff\x0f", id="length-without-bytes"),
        pytest.param(b"\x12\x00", id="other-field"),
        pytest.param(wrap(b""), id="empty"),
        pytest.param(wrap(b"\xff" * 64), id="garbage"),
        pytest.param(wrap(b"\x08\0\0\0" + b"\0" * 60), id="zeros"),
    ],
)
def test_message_that_is_no_request_is_rejected(server, method, message):
    assert rejection(server, method, message)[0] is grpc.StatusCode.INVALID_ARGUMENT


def test_huge_message_is_not_even_read(server):
    code, _ = rejection(server, "ExecuteTransform", wrap(bytes(MAX_REQUEST_SIZE_BYTES + 1024)))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("interval", "data_paths", "expected"),
    [
        pytest.param((3, 7), (), "expected files with offsets 3 to 7, found none", id="rows-without-files"),
        pytest.param((3, 2), None, "expected an end from 3, found 2", id="backwards"),
        pytest.param((0, 2**64 - 1), None, "expected at most", id="endless"),
    ],
)
def test_impossible_offsets_are_rejected(server, interval, data_paths, expected):
    request = server.request(MAP, "impossible", interval=interval, data_paths=data_paths)
    code, details = rejection(server, "ExecuteTransform", wrap(encode_root(request)))
    assert (code, expected in details) == (grpc.StatusCode.INVALID_ARGUMENT, True), details


def raw_query(server, output, *steps, engine="spark"):
    pq.write_table(pa.table({"x": [3, 1, 2], "name": ["c", "a", "b"]}), server.folder / "in" / "plain.parquet")
    transform = transform_sql(*steps)
    return server.raw_query(
        RawQueryRequest(
            input_data_paths=(str(server.folder / "in" / "plain.parquet"),),
            transform=type(transform)(engine=engine, queries=transform.queries),
            output_data_path=str(server.folder / "out" / output),
        )
    )


def test_raw_query_for_another_engine_is_told_as_such_and_leaves_no_file(server):
    assert isinstance(raw_query(server, "wrong", "SELECT * FROM input", engine="flink"), RawQueryResponseInvalidQuery)
    assert not (server.folder / "out" / "wrong").exists()


def container(folder: Path) -> list[str]:
    """A command that runs another like in a container: a root of its own, no capabilities, no sandboxes inside."""
    shown = [path for path in Path("/").iterdir() if path.name not in ("proc", "dev", "sys", "tmp", "runtime")]
    command = [str(find_bubblewrap().path), "--unshare-user", "--unshare-pid", "--cap-drop", "ALL", "--tmpfs", "/"]
    for path in shown:
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        else:
            command += ["--ro-bind", str(path), str(path)]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", str(folder), str(folder)]
    # The program itself may have been checked out below the folder that is hidden.
    for path in (Path(__file__).parents[4], Path(sys.prefix)):
        if path.is_relative_to("/tmp"):
            command += ["--ro-bind", str(path), str(path)]
    return [*command, "--die-with-parent", "--"]


def test_where_no_sandbox_can_be_made_the_server_does_not_start(tmp_path):
    command = [*container(tmp_path), sys.executable, "-m", "odf_foreign.grpc", "--port", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 1
    assert "no sandbox, so no foreign query is run" in ran.stderr


def test_container_of_the_callers_is_the_sandbox_of_one_session_after_another_if_told_so(spark_engine, tmp_path):
    with running_server(tmp_path, around=container(tmp_path), options=["--isolation", "caller"]) as server:
        assert isinstance(server.transform(server.request(MAP, "one")), TransformResponseSuccess)
        assert pq.read_table(tmp_path / "out" / "one").num_rows == 3

        # A raw query has a session of its own; its steps run over plain rows.
        steps = [("more", "SELECT *, x + 1 AS y FROM input -- all"), "SELECT * FROM more WHERE y > 2 ORDER BY y DESC"]
        assert raw_query(server, "raw", *steps) == RawQueryResponseSuccess(num_records=2)
        # Columns of slices, such as ``op``, are not added.
        found = pq.read_table(tmp_path / "out" / "raw").to_pylist()
        assert found == [{"x": 3, "name": "c", "y": 4}, {"x": 2, "name": "b", "y": 3}]


def test_machine_that_is_no_container_is_not_taken_for_one(tmp_path):
    # The root of this machine is shown as it is, so that nothing can be made in it.
    around = [
        str(find_bubblewrap().path),
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--bind",
        str(tmp_path),
        str(tmp_path),
    ]
    with running_server(tmp_path, around=around, options=["--isolation", "caller"]) as server:
        answer = server.transform(server.request(MAP, "one"))
    assert isinstance(answer, TransformResponseInternalError)
    assert "a container of its own is needed" in answer.message
