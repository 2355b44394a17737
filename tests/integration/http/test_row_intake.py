"""Rows over HTTP, and what strangers try there (FEED-4 to FEED-7)."""

import http.client
import io
import json
import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from yarl import URL

from support.daemons import Daemon, daemon
from support.nodes import RealNode

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: {kind}, ddlSchema: [event_time TIMESTAMP, n BIGINT]}}
      merge: {{kind: Append}}
"""
DERIVED = """
kind: DatasetSnapshot
version: 1
content:
  name: derived
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: readings, alias: r}]
      transform: {kind: Sql, engine: datafusion, query: "SELECT event_time, n FROM r"}
"""
OTHERS = ("csv", "typed", "texts", "latin", "untold", "array")
LIMIT_BYTES = 100_000
ROWS = b'{"event_time": "2024-01-01T00:00:00Z", "n": 1}\n{"event_time": "2024-01-02T00:00:00Z", "n": "x"}\n'
NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Served:
    node: RealNode
    daemon: Daemon
    tokens: dict[str, str]

    def send(
        self, body: bytes, name: str = "readings", *, token: str | None = "one", path: str = "", **headers: str
    ) -> tuple[int, Any]:
        """Send rows; give status and answer."""
        fields = {"Content-Type": NDJSON} | {key.replace("_", "-"): value for key, value in headers.items()}
        if token is not None:
            fields["Authorization"] = f"Bearer {self.tokens.get(token, token)}"
        there = URL(self.daemon.url)
        with closing(http.client.HTTPConnection(str(there.host), there.port or 0, timeout=240)) as connection:
            connection.request("POST", f"/{name}/ingest{path}", body=body, headers=fields)
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if "json" in answer.getheader("Content-Type", "") else body

    def state(self) -> str:
        """Say what all datasets and quarantines are."""
        lists = [self.node.must("quarantine", "list", name).out for name in ("readings", *OTHERS)]
        return "".join([self.node.must("list", "-o", "json").out, *lists])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("rows")
    node = RealNode(folder / "home")
    manifests = {
        "readings": MANIFEST.format(name="readings", kind="NdJson"),
        "csv": MANIFEST.format(name="csv", kind="Csv, header: true"),
        "typed": MANIFEST.format(name="typed", kind="Parquet"),
        "texts": MANIFEST.format(name="texts", kind="Parquet").replace("BIGINT", "STRING"),
        "latin": MANIFEST.format(name="latin", kind="Csv, encoding: windows-1252"),
        "untold": MANIFEST.format(name="untold", kind="Csv").replace(
            ", ddlSchema: [event_time TIMESTAMP, n BIGINT]", ""
        ),
        "array": MANIFEST.format(name="array", kind="Json"),
        "derived": DERIVED,
        "hidden": MANIFEST.format(name="hidden", kind="NdJson"),
    }
    for name, text in manifests.items():
        (folder / name).write_text(text)
        node.must("add", str(folder / name))
    node.must("publish", "hidden", "--off")
    tokens = {
        label: json.loads(node.must("token", "create", label, *words, "-o", "json").out)["token"]
        for label, words in {
            "one": (
                "--dataset",
                "readings",
                *(word for name in (*OTHERS, "derived") for word in ("--dataset", name)),
            ),
            "two": ("--dataset", "readings"),
            "csv": ("--dataset", "csv"),
            "all": (),
            "reader": ("--read-all",),
        }.items()
    }
    with daemon(node.home, settings=f"[limits]\nsent_rows_bytes = {LIMIT_BYTES}\n") as running:
        found = Served(node, running, tokens)
        assert found.send(ROWS)[0] == 200  # the first rows bring the schema, as no rows would
        yield found


def test_rows_are_taken_once_under_a_key_and_answered_as_the_first_time(served: Served) -> None:
    """Clauses FEED-4, FEED-5 and FEED-7."""
    status, first = served.send(ROWS, Idempotency_Key='"monday"')
    assert (status, first["newRows"], first["quarantinedRows"], first["repeated"]) == (200, 1, 1, False)
    assert first["reasons"][0]["column"] == "n"
    before = served.state()
    for key in ('"monday"', "monday"):
        assert served.send(ROWS, Idempotency_Key=key) == (200, first | {"repeated": True})
    assert served.state() == before
    shown = served.node.must("tail", "readings", "-o", "ndjson").out
    assert json.loads(shown.splitlines()[-1])["n"] == 1


def test_key_belongs_to_a_token_and_a_dataset(served: Served) -> None:
    """Clause FEED-3: nobody learns of, takes or blocks another one's keys."""
    first = served.send(ROWS, Idempotency_Key="shared")[1]
    other = served.send(ROWS + ROWS, token="two", Idempotency_Key="shared")
    assert (other[0], other[1]["newRows"], other[1]["repeated"]) == (200, 2, False)
    csv = served.send(b"event_time,n\n2024-01-01,7\n", "csv", Content_Type="text/csv", Idempotency_Key="shared")
    assert (csv[0], csv[1]["newRows"], csv[1]["repeated"]) == (200, 1, False)
    assert served.send(ROWS, Idempotency_Key="shared")[1] == first | {"repeated": True}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"token": None}, 401),
        ({"token": "nonsense"}, 401),
        ({"token": "csv"}, 403),
        ({"token": "all"}, 403),  # for datasets of others
        ({"token": "reader"}, 403),
        ({"name": "hidden"}, 404),
        ({"name": "nothing"}, 404),
        ({"name": "derived"}, 422),
        ({"path": "?sourceName=other"}, 422),
        ({"path": "?sourceName=default&sourceName=default"}, 400),
        ({"path": "?uploadToken=x"}, 400),
        ({"Content_Type": "text/csv"}, 415),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Encoding": "gzip"}, 415),
        ({"odf_event_time": "yesterday"}, 400),
        ({"Idempotency_Key": ""}, 400),
        ({"Idempotency_Key": "k" * 256}, 400),
        # More than a line of a head may have; of one that does not arrive at once the connection is cut (the attacks on
        # the framing), whether or not the answer is read before.
        ({"Idempotency_Key": "k" * 9_000}, 400),
        ({"Idempotency_Key": '"a\x07b"'}, 400),
        ({"Content_Digest": "sha-256=:AAAA:"}, 400),
        ({"body": b""}, 200),
        ({"body": b'{"n": "x"}\n'}, 422),
        ({"body": b"x" * (LIMIT_BYTES + 1)}, 413),
    ],
)
def test_request_that_brings_no_rows_changes_nothing(served: Served, changed: dict[str, Any], status: int) -> None:
    """Clauses FEED-4 to FEED-6."""
    before = served.state() if changed.get("body") != b'{"n": "x"}\n' else None
    found, answer = served.send(**({"body": ROWS} | changed))
    assert found == status, answer
    assert before is None or served.state() == before


def test_batch_of_which_nothing_is_taken_says_why(served: Served) -> None:
    """Clause FEED-7."""
    status, answer = served.send(b'{"event_time": "2024-01-01", "n": "no"}\n')
    assert status == 422
    assert (answer["report"]["quarantinedRows"], answer["report"]["reasons"][0]["value"]) == (1, "no")


def test_other_rows_under_a_key_are_rejected(served: Served) -> None:
    """Clause FEED-5."""
    assert served.send(ROWS, Idempotency_Key="first")[0] == 200
    before = served.state()
    for body, fields in ((ROWS + b"\n", {}), (ROWS, {"odf_event_time": "2024-01-01T00:00:00Z"})):
        status, answer = served.send(body, Idempotency_Key="first", **fields)
        assert (status, "before" in answer["detail"]) == (422, True)
    assert served.state() == before


def test_same_key_at_the_same_time_is_taken_once(served: Served) -> None:
    """Clause FEED-5: the second is told that the first still runs."""
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: served.send(ROWS, Idempotency_Key="twins"), range(4)))
    assert {status for status, _ in answers} <= {200, 409}
    assert [answer["repeated"] for status, answer in answers if status == 200].count(False) == 1


def test_rows_that_waited_for_their_turn_count_their_own_blocks(served: Served) -> None:
    """Clause FEED-7."""
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: served.send(ROWS), range(3)))
    assert [(status, answer["newBlocks"], answer["newRows"]) for status, answer in answers] == [(200, 1, 1)] * 3
    assert len({answer["head"] for _, answer in answers}) == 3


def test_body_without_an_end_is_no_row_and_holds_up_nobody(served: Served) -> None:
    """Clause FEED-6."""
    there = URL(served.daemon.url)
    head = (
        f"POST /readings/ingest HTTP/1.1\r\nHost: {there.host}:{there.port}\r\nContent-Type: {NDJSON}\r\n"
        f"Authorization: Bearer {served.tokens['two']}\r\nIdempotency-Key: cut\r\nContent-Length: 1000\r\n\r\n"
    )
    before = served.state()
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((str(there.host), there.port or 0))) for _ in range(2)]
        for each in slow:
            each.sendall(head.encode() + ROWS)
        # Whichever came first holds the key; the other one is answered.
        answered, _, _ = select.select(slow, [], [], 30)
        assert b"409" in answered[0].recv(100)
        assert served.send(ROWS, token="two", Idempotency_Key="cut")[0] == 409
        assert served.send(b"event_time,n\n2024-01-01,7\n", "csv", Content_Type="text/csv")[0] == 200
        changed = served.state()
    assert before != changed
    assert served.send(ROWS, token="two", Idempotency_Key="uncut")[1]["newRows"] == 1
    assert served.state() != changed


ARROW = "application/vnd.apache.arrow.stream"
DAY = 86_400_000
END = b"\xff\xff\xff\xff\0\0\0\0"


def stream(*batches: pa.RecordBatch, compression: str | None = None) -> bytes:
    written = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(written, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return written.getvalue()


def rows(n: pa.Array, **more: pa.Array) -> pa.RecordBatch:
    times = pa.array(range(DAY, DAY + len(n)), pa.timestamp("ms", "UTC"))
    return pa.record_batch({"event_time": times, "n": n, **more})


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_arrow_stream_is_taken_where_the_source_reads_typed_columns(served: Served, compression: str | None) -> None:
    """Clause FEED-6: of several batches, from which what does not fit is set aside."""
    whole = rows(pa.array([1, 2]))
    coded = rows(pa.array([3, 2**63], pa.uint64()).dictionary_encode())
    body = stream(whole, whole, compression=compression)
    key = f"stream {compression}"
    status, first = served.send(body, "typed", Content_Type=ARROW, Idempotency_Key=key)
    assert (status, first["newRows"], first["quarantinedRows"]) == (200, 4, 0)
    assert served.send(body, "typed", Content_Type=ARROW, Idempotency_Key=key)[1] == first | {"repeated": True}
    status, found = served.send(stream(coded, compression=compression), "typed", Content_Type=ARROW)
    assert (status, found["newRows"], found["quarantinedRows"]) == (200, 1, 1)
    assert found["reasons"][0]["value"] == str(2**63)
    empty = served.send(stream(whole.slice(0, 0), compression=compression), "typed", Content_Type=ARROW)
    assert (empty[0], empty[1]["newRows"]) == (200, 0)


def _changed(whole: bytes, before: bytes, after: bytes) -> bytes:
    assert before in whole
    return whole.replace(before, after)


def _with_wild_offsets() -> bytes:
    whole = stream(rows(pa.array(["abcde", "fghij"])))
    return _changed(whole, b"".join(n.to_bytes(4, "little") for n in (0, 5, 10)), b"\0\0\0\0\1\0\0\0\xff\xff\xff\x7f")


def _with_indices_of_nothing() -> bytes:
    batch = rows(pa.DictionaryArray.from_arrays(pa.array([0, 99], pa.int8()), pa.array([1]), safe=False))
    return stream(batch)


def _with_a_buffer_that_claims_to_unpack_to_petabytes() -> bytes:
    whole = stream(rows(pa.array(range(1_111))), compression="zstd")
    return _changed(whole, (8 * 1_111).to_bytes(8, "little") + b"\x28\xb5", (2**52).to_bytes(8, "little") + b"\x28\xb5")


def _with_a_dictionary_of_one_long_text() -> bytes:
    """A few kB that stand for a terabyte of text."""
    indices = pa.array([0] * 50_000, pa.int8())
    return stream(rows(pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 20_000_000]))), compression="zstd")


def _with_rows_without_bytes() -> bytes:
    """A trillion of them."""
    whole = stream(pa.record_batch({"event_time": pa.nulls(4_321), "n": pa.nulls(4_321)}))
    return _changed(whole, (4_321).to_bytes(8, "little"), (10**12).to_bytes(8, "little"))


def _with_lists_in_lists() -> bytes:
    kind: pa.DataType = pa.int64()
    for _ in range(60):
        kind = pa.list_(kind)
    return stream(rows(pa.nulls(1, kind)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: stream(rows(pa.array([1])))[: -len(END)],
        lambda: stream(rows(pa.array([-1], pa.int32())))[: -len(END)],
        lambda: stream(rows(pa.array([1])))[:-100],
        lambda: stream(rows(pa.array([1]))) + b"x",
        lambda: stream(rows(pa.array([1]))) * 2,
        lambda: END,
        lambda: b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        lambda: b"\xff\xff\xff\xff\0\0\1\0" + b"\0" * 65_536,
        lambda: b"ARROW1\0\0" + stream(rows(pa.array([1]))),
        lambda: stream(pa.record_batch({"n": pa.array([1])})),
        lambda: stream(rows(pa.array([1]), more=pa.array([1]))),
        lambda: stream(rows(pa.array([[1]]))),
        lambda: stream(rows(pa.array(["1"]))),
        _with_wild_offsets,
        _with_indices_of_nothing,
        _with_a_buffer_that_claims_to_unpack_to_petabytes,
        _with_rows_without_bytes,
        _with_lists_in_lists,
    ],
)  # fmt: skip
def test_arrow_stream_that_is_none_or_other_is_no_row(served: Served, make: Callable[[], bytes]) -> None:
    """Clause FEED-6."""
    before = served.state()
    status, answer = served.send(make(), "typed", Content_Type=ARROW)
    assert (status, answer["type"].rpartition(":")[2]) == (422, "no-rows-taken"), answer
    assert served.state() == before


def test_dictionary_that_stands_for_more_than_memory_holds_up_nobody(served: Served) -> None:
    """Clauses FEED-6 and ENGINE-16."""
    before = served.state()
    status, answer = served.send(_with_a_dictionary_of_one_long_text(), "texts", Content_Type=ARROW)
    assert (status, answer["type"].rpartition(":")[2]) == (422, "no-rows-taken"), answer
    assert served.state() == before
    coded = rows(pa.array(["a", "b", "a"]).dictionary_encode())
    assert served.send(stream(coded), "texts", Content_Type=ARROW)[1]["newRows"] == 3


def test_view_of_bytes_that_are_no_text_is_set_aside_alone(served: Served) -> None:
    """Clauses FEED-6 and ING-3."""
    shown = rows(pa.array([b"a" * 30, None, b"\xff"], pa.binary_view()))
    status, found = served.send(stream(shown), "texts", Content_Type=ARROW)
    assert (status, found["newRows"], found["quarantinedRows"]) == (200, 2, 1)


@pytest.mark.parametrize("name", ["readings", "csv", "array"])
def test_arrow_stream_is_taken_where_a_source_of_texts_declares_its_columns(served: Served, name: str) -> None:
    """Clauses FEED-6 and ING-3: by the rules for typed columns, whatever the options for texts are."""
    status, found = served.send(stream(rows(pa.array([7, 2**63], pa.uint64()))), name, Content_Type=ARROW)
    assert (status, found["newRows"], found["quarantinedRows"]) == (200, 1, 1)
    assert found["reasons"][0]["value"] == str(2**63)
    assert served.node.must("tail", name, "-n", "1", "-o", "json").json()[0]["n"] == 7
    before = served.state()
    for body in (stream(rows(pa.array(["1"]))), stream(rows(pa.array([1])))[:-4]):
        status, answer = served.send(body, name, Content_Type=ARROW)
        assert (status, answer["type"].rpartition(":")[2]) == (422, "no-rows-taken"), answer
    assert served.state() == before


@pytest.mark.parametrize("name", ["latin", "untold"])
def test_arrow_stream_for_a_source_of_texts_without_columns_or_in_another_encoding_is_rejected(
    served: Served, name: str
) -> None:
    """Clause FEED-6."""
    before = served.state()
    assert served.send(stream(rows(pa.array([1]))), name, Content_Type=ARROW)[0] == 415
    assert served.state() == before
