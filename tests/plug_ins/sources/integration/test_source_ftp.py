"""Files of FTP servers as sources (ING-32)."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from odf_node.byte_rate import ByteRate
from odf_node.ingest.source_variables import digest_of_place, fill_in
from odf_node.ports.sources import Fetched, SourceNotFoundError, SourceTooLargeError, SourceUnavailableError, UpToDate
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import MalformedError
from odf_protocol.events import EventTimeSourceFromSystemTime, FetchStepUrl, SourceState
from odf_protocol.timestamp import Timestamp
from odf_sources.ftp import parse_ftp_url
from support.ftp_server import PASSWORD, FTPHandler, ftp_server

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
TIME = Timestamp.parse("2020-02-29T12:00:00Z")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "files" / "a folder").mkdir(parents=True)
    (tmp_path / "got").mkdir()
    put(tmp_path / "files", "x,y\r\n1,2\n")
    return tmp_path / "files"


@pytest.fixture
def port(files: Path) -> Iterator[int]:
    with ftp_server(files) as port:
        yield port


def put(files: Path, content: str, *, time: Timestamp = TIME) -> None:
    path = files / "a folder" / "ä #1.csv"
    path.write_text(content, newline="")
    os.utime(path, (time.seconds, time.seconds))


def fetch(
    port: int, files: Path, path: str = "a folder/ä #1.csv", *, user: str = "", state: SourceState | None = None,
    limits: SourceLimits | None = None, is_timeless: bool = False,
) -> Fetched | UpToDate:  # fmt: skip
    event_time = EventTimeSourceFromSystemTime() if is_timeless else None
    step = FetchStepUrl(url=f"ftp://{user}127.0.0.1:{port}/{quote(path)}", event_time=event_time)
    filled, folder = fill_in(step, {"FTP": PASSWORD}), files.parent / "got"
    reader = LocalSourceReader(limits=limits or SourceLimits())
    return asyncio.run(reader.fetch(filled, state=state, now=NOW, folder=folder))


def test_file_comes_byte_for_byte_and_again_when_its_time_has_changed(port: int, files: Path) -> None:
    first = fetch(port, files)
    assert isinstance(first, Fetched)
    assert first.path.read_bytes() == b"x,y\r\n1,2\n"
    assert first.source_state == SourceState(
        source_name="default", kind="odf/last-modified", value="2020-02-29T12:00:00Z"
    )
    assert (first.event_time, first.has_more) == (TIME, False)
    assert fetch(port, files, state=first.source_state) == UpToDate()
    put(files, "x,y\n3,4\n", time=Timestamp(TIME.seconds + 1))
    second = fetch(port, files, state=first.source_state, is_timeless=True)
    assert isinstance(second, Fetched)
    assert second.path.read_bytes() == b"x,y\n3,4\n"
    assert second.event_time == NOW
    assert len(list((files.parent / "got").iterdir())) == 2


@pytest.mark.parametrize("rate", [0, 10**9], ids=["timed", "rate-limited"])
def test_reader_that_says_more_than_a_pipe_holds_is_heard_to_its_end_ing_31(
    port: int, files: Path, monkeypatch: pytest.MonkeyPatch, rate: int
) -> None:
    """ING-31: nobody read what it said before its bytes had ended, so it waited for ever where no time is limited."""
    (files.parent / "sitecustomize.py").write_text("import sys\nsys.stderr.write('a warning\\n' * 100_000)\n")
    monkeypatch.setenv("PYTHONPATH", str(files.parent))
    step = FetchStepUrl(url=f"ftp://127.0.0.1:{port}/{quote('a folder/ä #1.csv')}")
    reader = LocalSourceReader(limits=SourceLimits(answer_s=20.0), rate=ByteRate(rate))
    filled, folder = fill_in(step, {}), files.parent / "got"
    first = asyncio.run(reader.fetch(filled, state=None, now=NOW, folder=folder))
    assert isinstance(first, Fetched)
    assert first.path.read_bytes() == b"x,y\r\n1,2\n"


def test_user_signs_in_with_a_password_of_any_characters_ing_34(port: int, files: Path) -> None:
    assert isinstance(fetch(port, files, user="reader:${{ env.FTP }}@"), Fetched)
    with pytest.raises(SourceUnavailableError, match="530 Authentication failed") as caught:
        fetch(port, files, user="reader:wr0ng@")
    assert "wr0ng" not in str(caught.value)


def test_file_that_is_not_there_or_too_large_is_told_and_leaves_nothing(port: int, files: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="550"):
        fetch(port, files, "none.csv")
    with pytest.raises(SourceTooLargeError):
        fetch(port, files, limits=SourceLimits(size_bytes=8))
    assert list((files.parent / "got").iterdir()) == []


def test_server_without_times_and_sizes_gives_the_file_each_time_within_bounds(files: Path) -> None:
    with ftp_server(files, without=("MDTM", "SIZE")) as port:
        first = fetch(port, files)
        assert isinstance(first, Fetched)
        assert (first.source_state, first.event_time) == (None, None)
        with pytest.raises(SourceTooLargeError):
            fetch(port, files, limits=SourceLimits(size_bytes=8))


class ElsewhereHandler(FTPHandler):
    """Names another machine for the data, which would then hear from this one."""

    permit_privileged_ports = True
    masquerade_address = "192.0.2.1"


def test_data_come_from_the_host_that_was_asked(files: Path) -> None:
    with ftp_server(files, without=("EPSV",), handler=ElsewhereHandler) as port:
        assert isinstance(fetch(port, files), Fetched)


class GrowingHandler(FTPHandler):
    """Has a file that somebody writes to while it is read."""

    def ftp_RETR(self, file: str) -> str | None:  # noqa: N802 - the library's name
        with Path(file).open("ab") as stream:
            stream.write(b"more")
        return super().ftp_RETR(file)


def test_file_that_changes_while_it_is_read_is_not_taken(files: Path) -> None:
    with (
        ftp_server(files, handler=GrowingHandler) as port,
        pytest.raises(SourceUnavailableError, match="changed while it was read"),
    ):
        fetch(port, files)
    assert list((files.parent / "got").iterdir()) == []


def no_progress(connection: socket.socket) -> None:
    connection.recv(1)


def answer_without_end(connection: socket.socket) -> None:
    connection.sendall(b"220-welcome\r\n")
    while True:
        connection.sendall(b"x" * 8000 + b"\r\n")


def repeat_the_password(connection: socket.socket) -> None:
    connection.sendall(b"220 hello\r\n")
    connection.recv(1000)
    connection.sendall(b"331 go on\r\n")
    connection.sendall(b"530 you said " + connection.recv(1000).split()[1] + b" \x1b[2J\xff\r\n")
    connection.recv(1)


@pytest.mark.parametrize(
    ("serve", "stated"),
    [
        (no_progress, "timed out|sent nothing"),
        (answer_without_end, "its answer does not end|no complete answer|sent nothing"),
        (repeat_the_password, "does not answer"),
    ],
)
def test_false_server_is_bounded_and_told(serve, stated: str, files: Path) -> None:
    def accept() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                serve(connection)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, daemon=True).start()
        limits = SourceLimits(read_s=2.0, answer_s=5.0, total_s=20.0)
        with pytest.raises(SourceUnavailableError, match=stated) as caught:
            fetch(listener.getsockname()[1], files, user="reader:s3cret@", limits=limits)
    assert "s3cret" not in str(caught.value)
    assert str(caught.value).isprintable()
    assert list((files.parent / "got").iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h",
        "ftp://h/",
        "ftp://h/a/",
        "ftp:///a",
        "ftp://h/a?b",
        "ftp://h:x/a",
        "ftp://h/a%0D%0ADELE%20b",
        "ftp://h/a\nb",
        "ftp://h/a\r\nDELE b",
        "ftp://h\t/a",
        "ftp://h\u2028/a",
    ],
)
def test_url_that_names_no_file_is_rejected(url: str) -> None:
    with pytest.raises(MalformedError, match="URL of a file"):
        parse_ftp_url(url)


def test_new_password_leads_to_the_same_place() -> None:
    one, other, elsewhere = (FetchStepUrl(url=f"ftp://u:{each}") for each in ("a@h/x", "b@h/x", "a@h/y"))
    assert digest_of_place(one) == digest_of_place(other) != digest_of_place(elsewhere)
