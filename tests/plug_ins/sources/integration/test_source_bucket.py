"""Objects of buckets as sources (ING-45)."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from pyarrow.fs import S3FileSystem

from odf_node.ingest.source_variables import fill_in
from odf_node.ports.sources import Fetched, SourceNotFoundError, SourceTooLargeError, SourceUnavailableError, UpToDate
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.events import EventTimeSourceFromPath, FetchStepFilesGlob, FetchStepUrl, SourceState
from odf_protocol.timestamp import Timestamp
from odf_sources.bucket import parse_object_url
from support.bucket_server import CREDENTIALS, bucket_server, make_bucket
from support.nodes import RealNode

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
SECRET = "a/b+c%d e"
USER = "${{ env.KEY }}:${{ env.SECRET }}@"
KEYS = {"KEY": "AKIDEXAMPLE", "SECRET": SECRET}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bucket_server(tmp_path_factory.mktemp("bucket") / "server.log") as endpoint:
        yield endpoint


@pytest.fixture
def bucket(server: str, tmp_path: Path) -> str:
    """Give the address of a new bucket without its scheme and keys."""
    name = tmp_path.name.replace("_", "-").lower()
    make_bucket(server, name)
    return f"{server}/{name}"


def put(bucket: str, key: str, content: bytes) -> None:
    endpoint, _, name = bucket.partition("/")
    files = S3FileSystem(
        access_key=KEYS["KEY"], secret_key=SECRET, region="us-east-1", endpoint_override=endpoint, scheme="http"
    )
    with files.open_output_stream(f"{name}/{key}") as stream:
        stream.write(content)


def fetch(
    step: FetchStepUrl | FetchStepFilesGlob, folder: Path, state: SourceState | None = None,
    limits: SourceLimits | None = None,
) -> Fetched | UpToDate:  # fmt: skip
    reader = LocalSourceReader(limits=limits or SourceLimits())
    (folder / "got").mkdir(exist_ok=True)
    return asyncio.run(reader.fetch(fill_in(step, KEYS), state=state, now=NOW, folder=folder / "got"))


def url(bucket: str, key: str, user: str = USER) -> FetchStepUrl:
    return FetchStepUrl(url=f"s3+http://{user}{bucket}/{quote(key)}")


def matching(bucket: str, pattern: str, event_time: EventTimeSourceFromPath | None = None) -> FetchStepFilesGlob:
    return FetchStepFilesGlob(path=f"s3+http://{USER}{bucket}/{pattern}", event_time=event_time)


def reject(
    step: FetchStepUrl | FetchStepFilesGlob, folder: Path, error: type[OdfError], stated: str,
    limits: SourceLimits | None = None,
) -> None:  # fmt: skip
    with pytest.raises(error, match=stated) as caught:
        fetch(step, folder, limits=limits)
    assert str(caught.value).isprintable()
    assert SECRET not in str(caught.value)
    assert quote(SECRET, safe="") not in str(caught.value)
    assert list((folder / "got").iterdir()) == []


def test_object_comes_byte_for_byte_and_again_when_it_was_written_anew(bucket: str, tmp_path: Path) -> None:
    put(bucket, "a folder/ä #1?.csv", b"x,y\r\n1,2\n")
    first = fetch(url(bucket, "a folder/ä #1?.csv"), tmp_path)
    assert isinstance(first, Fetched)
    assert first.path.read_bytes() == b"x,y\r\n1,2\n"
    assert first.name == f"s3+http://{bucket}/a folder/ä #1?.csv"
    assert first.source_state is not None
    assert first.source_state.kind == "odf/etag"
    assert first.event_time is not None
    assert first.event_time != NOW
    assert fetch(url(bucket, "a folder/ä #1?.csv"), tmp_path, first.source_state) == UpToDate()
    put(bucket, "a folder/ä #1?.csv", b"x,y\n3,4\n")
    second = fetch(url(bucket, "a folder/ä #1?.csv"), tmp_path, first.source_state)
    assert isinstance(second, Fetched)
    assert second.path.read_bytes() == b"x,y\n3,4\n"


def test_object_of_many_ranges_and_zeros_comes_byte_for_byte(bucket: str, tmp_path: Path) -> None:
    content = b"\1\0" * 6_000_000
    put(bucket, "zeros", content)
    found = fetch(url(bucket, "zeros"), tmp_path)
    assert isinstance(found, Fetched)
    assert found.path.read_bytes() == content
    put(bucket, "nothing", b"")
    found = fetch(url(bucket, "nothing"), tmp_path)
    assert isinstance(found, Fetched)
    assert found.path.read_bytes() == b""


def test_each_object_that_matches_comes_once_in_order_of_names(bucket: str, tmp_path: Path) -> None:
    for key in ("in/d-2024-01-02.csv", "in/d-2024-01-01.csv", "in/other.csv", "in/.d-hidden.csv", "in/deep/d-x.csv"):
        put(bucket, key, key.encode())
    source = EventTimeSourceFromPath(pattern=r"d-(.*)\.csv", timestamp_format="%Y-%m-%d")
    step = matching(bucket, "in/[a-d]*-0?.csv", source)
    first = fetch(step, tmp_path)
    assert isinstance(first, Fetched)
    assert (first.path.read_bytes(), first.has_more) == (b"in/d-2024-01-01.csv", True)
    assert first.event_time == Timestamp.parse("2024-01-01T00:00:00Z")
    assert first.source_state == SourceState(source_name="default", kind="odf/etag", value="d-2024-01-01.csv")
    second = fetch(step, tmp_path, first.source_state)
    assert isinstance(second, Fetched)
    assert (second.name, second.has_more) == (f"s3+http://{bucket}/in/d-2024-01-02.csv", False)
    assert fetch(step, tmp_path, second.source_state) == UpToDate()


def test_pattern_of_folders_finds_what_lies_in_them_and_no_name_twice(bucket: str, tmp_path: Path) -> None:
    put(bucket, "2023/x.csv", b"1")
    put(bucket, "2024/y.csv", b"2")
    step = matching(bucket, "20*/?.csv")
    first = fetch(step, tmp_path)
    assert isinstance(first, Fetched)
    assert (first.path.read_bytes(), first.has_more) == (b"1", True)
    first.path.unlink()
    put(bucket, "2024/x.csv", b"3")
    reject(step, tmp_path, MalformedError, "files of different names")


def test_what_is_not_there_or_too_large_is_told_and_leaves_nothing(bucket: str, tmp_path: Path) -> None:
    put(bucket, "in/a.csv", b"123456789")
    reject(url(bucket, "none.csv"), tmp_path, SourceNotFoundError, "no such object")
    reject(url(bucket, "in/*.csv"), tmp_path, SourceNotFoundError, "no such object; files by a pattern are for 'fetch")
    reject(url(bucket, "in"), tmp_path, SourceNotFoundError, "no such object")
    reject(url(f"{bucket}-2", "a.csv"), tmp_path, SourceNotFoundError, "no such|NO_SUCH_BUCKET")
    reject(matching(bucket, "x/*"), tmp_path, SourceNotFoundError, "no object matches")
    limits = SourceLimits(size_bytes=8)
    reject(url(bucket, "in/a.csv"), tmp_path, SourceTooLargeError, "size_bytes", limits)
    reject(matching(bucket, "in/*"), tmp_path, SourceTooLargeError, "size_bytes", limits)


def test_variables_of_the_environment_say_which_server_and_keys(
    server: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "a.csv", b"1")
    for name, value in (CREDENTIALS | {"AWS_ENDPOINT_URL": f"http://{server}"}).items():
        monkeypatch.setenv(name, value)
    name = bucket.rpartition("/")[2]
    found = fetch(FetchStepFilesGlob(path=f"s3://{name}/*.csv"), tmp_path)
    assert isinstance(found, Fetched)
    assert (found.path.read_bytes(), found.name) == (b"1", f"s3://{name}/a.csv")


MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: days
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "s3+http://%s@%s/in/day-*.csv"}
      read: {kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, n BIGINT]}
      merge: {kind: Append}
"""


def test_pull_takes_all_new_objects_each_in_a_commit_and_shows_no_secret(bucket: str, tmp_path: Path) -> None:
    for day in (2, 1):
        put(bucket, f"in/day-{day}.csv", f"event_time,n\n2024-01-0{day}T00:00:00Z,{day}\n".encode())
    node = RealNode(tmp_path / "home")
    (tmp_path / "manifest.yaml").write_text(MANIFEST % (USER[:-1], bucket))
    node.must("add", str(tmp_path / "manifest.yaml"))
    ran = node.must("-v", "pull", "days", environment=KEYS)
    assert "from 2 files, a commit each" in ran.out
    put(bucket, "in/day-3.csv", b"event_time,n\n2024-01-03T00:00:00Z,3\n")
    ran_again = node.must("pull", "days", environment=KEYS)
    assert "1 row added" in ran_again.out
    assert "up to date" in node.must("pull", "days", environment=KEYS).out
    log = node.must("log", "days", "-o", "yaml")
    assert "value: day-3.csv" in log.out
    shown = log.out + "".join(each.out + each.err for each in (ran, ran_again))
    assert SECRET not in shown
    assert quote(SECRET, safe="") not in shown


def test_pull_of_many_objects_lists_their_folder_at_its_ends_and_where_one_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clause ING-45: and takes what came, and leaves what went, meanwhile."""
    keys = [f"in/day-{number}.csv" for number in range(6)]

    class Changing(FalseBucket):
        listed = tuple(keys[:5])

        def list(self, token: str) -> None:
            lists = sum("list-type" in each for each in self.heard)
            self.listed = tuple(keys[:5] if lists == 1 else keys[:2] + keys[3:])
            super().list(token)

        def give(self) -> None:
            if "day-2" in self.path:
                self.answer(404, b"", {"Content-Length": "0"})
            else:
                super().give()

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with serving(Changing) as (bucket, heard):
        step, names, found = fill_in(matching(bucket, "in/day-*.csv"), KEYS), [], None
        while found is None or found.has_more:
            state, waiting = (None, ()) if found is None else (found.source_state, found.waiting)
            reader = LocalSourceReader(limits=SourceLimits())
            fetched = asyncio.run(reader.fetch(step, state=state, now=NOW, folder=tmp_path, waiting=waiting))
            assert isinstance(fetched, Fetched)
            found = fetched
            names.append(found.name.rpartition("/")[2])
    assert names == [f"day-{number}.csv" for number in (0, 1, 3, 4, 5)]
    assert sum("list-type" in each and "prefix=in%2F " in each for each in heard) == 3, heard


# Servers that are none


class FalseBucket(BaseHTTPRequestHandler):
    """A server that has the object ``in/a.csv`` of two bytes."""

    heard: list[str]
    listed = ("in/a.csv",)
    is_listed_whole = True
    size_bytes = reported_bytes = 2
    etags = ('"v"',)
    status = 200
    body = b"ab"

    def do_HEAD(self) -> None:
        self.hear()

    def do_GET(self) -> None:
        self.hear()

    def hear(self) -> None:
        self.heard.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
        if "list-type" in self.path:
            self.list(f"{len(self.heard)}-")
        else:
            self.give()

    def list(self, token: str) -> None:
        entries = "".join(
            f"<Contents><Key>{key}</Key><Size>2</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in self.listed
        )
        more = "false" if self.is_listed_whole else "true"
        text = f"<IsTruncated>{more}</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>{entries}"
        body = f'<?xml version="1.0"?><ListBucketResult>{text}</ListBucketResult>'.encode()
        self.answer(200, body, {"Content-Length": str(len(body)), "Content-Type": "application/xml"})

    def give(self) -> None:
        etag = self.etags[min(len(self.heard), len(self.etags)) - 1]
        dated = {"ETag": etag, "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}
        is_head = self.command == "HEAD"
        length = {"Content-Length": str(self.reported_bytes if is_head else self.size_bytes)}
        self.answer(self.status, b"" if is_head else self.body, length | dated)

    def answer(self, status: int, body: bytes, fields: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: type[FalseBucket], **changes: object) -> Iterator[tuple[str, list[str]]]:
    """Serve until left; give the bucket's address and the requests."""
    heard: list[str] = []
    own = type("Handler", (handler,), {"heard": heard, **changes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), own)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/bucket", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


BRIEFLY = SourceLimits(connect_s=20.0, read_s=20.0, answer_s=60.0)


def test_false_bucket_gives_what_an_honest_one_gives(tmp_path: Path) -> None:
    """So that rejections below are of what each of them changes."""
    with serving(FalseBucket) as (bucket, _):
        for step in (url(bucket, "in/a.csv"), matching(bucket, "in/*.csv")):
            found = fetch(step, tmp_path, limits=BRIEFLY)
            assert isinstance(found, Fetched)
            assert found.path.read_bytes() == b"ab"


def test_object_without_etag_is_known_by_the_time_of_its_last_change(tmp_path: Path) -> None:
    with serving(FalseBucket, etags=("",)) as (bucket, _):
        found = fetch(url(bucket, "in/a.csv"), tmp_path, limits=BRIEFLY)
        assert isinstance(found, Fetched)
        time = Timestamp.parse("2015-10-21T07:28:00Z")
        assert (found.event_time, found.source_state) == (
            time,
            SourceState(source_name="default", kind="odf/last-modified", value=str(time)),
        )
        assert fetch(url(bucket, "in/a.csv"), tmp_path, found.source_state, BRIEFLY) == UpToDate()


def test_keys_of_the_environment_do_not_go_to_a_server_that_a_manifest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (CREDENTIALS | {"AWS_SESSION_TOKEN": "t0ken", "AWS_REGION": "eu-x-1"}).items():
        monkeypatch.setenv(name, value)
    with serving(FalseBucket) as (bucket, heard):
        assert isinstance(fetch(url(bucket, "in/a.csv", user=""), tmp_path), Fetched)
        assert heard
        assert all(each.endswith(" None") for each in heard)
        heard.clear()
        assert isinstance(fetch(url(bucket, "in/a.csv"), tmp_path), Fetched)
        assert all(f"Credential={KEYS['KEY']}/" in each for each in heard)


def test_server_that_does_not_allow_it_says_how_keys_are_named(tmp_path: Path) -> None:
    with serving(FalseBucket, status=403) as (bucket, _):
        stated = r"does not allow it; set keys from the environment, as in s3\+https://"
        reject(url(bucket, "in/a.csv", user=""), tmp_path, SourceUnavailableError, stated, BRIEFLY)


class Redirecting(FalseBucket):
    """Sends everybody to another server."""

    to = ""

    def hear(self) -> None:
        self.heard.append(self.path)
        self.answer(307, b"", {"Location": f"http://{self.to}/in/a.csv", "Content-Length": "0"})


def test_redirect_leads_nowhere(tmp_path: Path) -> None:
    with (
        serving(FalseBucket) as (inside, heard),
        serving(Redirecting, to=inside.replace("127.0.0.1", "localhost")) as (bucket, asked),
    ):
        for step in (url(bucket, "in/a.csv"), matching(bucket, "in/*.csv"), url(bucket, "in/a.csv", user="")):
            reject(step, tmp_path, SourceUnavailableError, "does not answer", BRIEFLY)
        assert asked
        assert heard == []


@pytest.mark.parametrize(
    ("changes", "error", "stated"),
    [
        ({"size_bytes": 3}, SourceUnavailableError, "does not answer|bytes came of"),
        ({"reported_bytes": 5, "size_bytes": 0, "body": b""}, SourceUnavailableError, "fewer bytes came"),
        ({"reported_bytes": 5}, SourceUnavailableError, "fewer bytes came"),
        ({"reported_bytes": 10**15}, SourceTooLargeError, "size_bytes"),
        ({"etags": tuple(f'"{each}"' for each in range(20))}, SourceUnavailableError, "changed while it was read"),
        ({"listed": ("in/a&#10;.csv",)}, MalformedError, "keys of plain names"),
        ({"listed": ("in/a&#x1b;[2J.csv",)}, MalformedError, "keys of plain names"),
        ({"listed": ("in/" + "x" * 1100 + ".csv",)}, MalformedError, "keys of plain names"),
        ({"listed": ("in/../a.csv", "in/..")}, SourceNotFoundError, "no object matches"),
        ({"listed": ("elsewhere.csv",)}, MalformedError, "keys of plain names"),
    ],
)
def test_false_answer_is_rejected_and_leaves_nothing(
    changes: dict[str, object], error: type[OdfError], stated: str, tmp_path: Path
) -> None:
    with serving(FalseBucket, **changes) as (bucket, _):
        reject(matching(bucket, "in/*.csv"), tmp_path, error, stated, BRIEFLY)


def test_list_without_end_is_bounded(tmp_path: Path) -> None:
    with serving(FalseBucket, is_listed_whole=False) as (bucket, _):
        stated = "sent nothing for|does not end|ended its reader"
        reject(matching(bucket, "in/*"), tmp_path, SourceUnavailableError, stated, SourceLimits(answer_s=3.0))


class Silent(FalseBucket):
    """Takes its time, until it is left."""

    left: threading.Event

    def hear(self) -> None:
        self.left.wait(60)


def test_silent_server_is_left(tmp_path: Path) -> None:
    left = threading.Event()
    with serving(Silent, left=left) as (bucket, _):
        try:
            limits = SourceLimits(connect_s=1.0, read_s=1.0, answer_s=2.0)
            reject(url(bucket, "in/a.csv"), tmp_path, SourceUnavailableError, "sent nothing|does not answer", limits)
        finally:
            left.set()


@pytest.mark.parametrize(
    "source",
    ["s3://", "s3://b", "s3://b/", "s3://b/a/", "s3://b/a//b", "s3://b/../a", "s3://b/a%2F..%2Fb", "s3://b/%0A", "s3://b/a?x=1",
     "s3://b/a#b", "s3://*/a", "s3+http:///b/a", "s3+http://h/b", "s3+http://h:x/b/a", "s3://k:s@/a", "s3://k@b/a"],
)  # fmt: skip
def test_url_that_names_no_object_is_rejected(source: str) -> None:
    with pytest.raises(MalformedError, match="URL in a bucket") as caught:
        parse_object_url(source)
    assert "s@" not in str(caught.value)
