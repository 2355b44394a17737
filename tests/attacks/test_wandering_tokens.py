"""Secrets on their way to others: to other servers, into lists, logs and files that they read (HOME-23, HOME-42)."""

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from support.command_line import list_kept, run_command

SECRET = "odf-s3cret-0123456789"
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [city STRING, people BIGINT]}
      merge: {kind: Append}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    manifest = tmp_path / "cities.yaml"
    manifest.write_text(MANIFEST)
    made = run_command(tmp_path / "home", "add", manifest)
    assert made.returncode == 0, made.stderr
    return tmp_path / "home"


@pytest.fixture
def doors() -> Iterator[list[socket.socket]]:
    """Ports of two servers, and who knocks at them."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        for listener in opened:
            listener.setblocking(False)
        yield opened


def _address(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["", "odf+"])
@pytest.mark.parametrize("by_option", [False, True])
def test_token_of_one_server_is_not_shown_to_the_others_that_a_push_goes_to(
    home: Path, doors: list[socket.socket], by_option: bool, scheme: str
) -> None:
    for listener in doors:
        added = run_command(home, "repo", "alias", "add", "--push", "cities", f"{scheme}{_address(listener)}/cities")
        assert added.returncode == 0, added.stderr
    before = list_kept(home)
    words = ["--token", SECRET] if by_option else []
    environment = {} if by_option else {"ODF_NODE_TOKEN": SECRET}
    for what in ("--all", "cities"):
        pushed = run_command(home, "push", what, *words, environment=environment)
        assert pushed.returncode == 2, pushed
        assert "one token is for one server" in pushed.stderr
        assert SECRET not in pushed.stdout + pushed.stderr
    for listener in doors:
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert list_kept(home) == before


@pytest.mark.parametrize(
    "words",
    [
        ["login", "https://me:{s}@node.example", "--access-token", "t"],
        ["logout", "https://me:{s}@node.example"],
        ["repo", "add", "there", "https://me:{s}@node.example"],
        ["repo", "add", "there", "odf+https://{s}@node.example"],
        ["repo", "add", "bucket", "s3+https://me:{s}@node.example/b"],
        ["repo", "alias", "add", "--push", "cities", "https://me:{s}@node.example/cities"],
        ["peer", "add", "http://me:{s}@node.example"],
        ["subscribe", "http://me:{s}@127.0.0.1:9/cities"],
        ["pull", "http://me:{s}@127.0.0.1:9/cities"],
        ["push", "cities", "--to", "http://me:{s}@127.0.0.1:9/cities"],
        ["export", "cities", "--to", "s3+http://me:{s}@127.0.0.1:9/b/"],
        ["list", "http://me:{s}@127.0.0.1:9"],
        ["verify", "http://me:{s}@127.0.0.1:9/cities"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_password_in_an_address_is_not_kept_and_not_told(home: Path, words: list[str]) -> None:
    before = list_kept(home)
    reported = run_command(home, *(word.format(s=SECRET) for word in words))
    assert reported.returncode not in {0, 1}, reported
    assert list_kept(home) == before
    for path in home.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    shown = [run_command(home, *asked).stdout for asked in (["inspect", "audit"], ["repo", "list"], ["peer", "list"])]
    assert SECRET not in "".join(shown)


def test_copy_of_a_node_in_a_folder_that_others_enter_is_for_its_owner_alone(home: Path, tmp_path: Path) -> None:
    assert run_command(home, "token", "create", "me").returncode == 0
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    umask = os.umask(0o022)
    try:
        for _ in range(2):  # a new one, and one that is brought up to date
            made = run_command(home, "backup", folder)
            assert made.returncode == 0, made.stderr
    finally:
        os.umask(umask)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"odf-node.sqlite", "backup.json"} <= {path.name for path in files}
    assert [path.name for path in files if path.stat().st_mode & 0o077] == []
    with closing(sqlite3.connect(folder / "odf-node.sqlite")) as copy:
        assert copy.execute("SELECT count(*) FROM access_tokens").fetchone() == (1,)


def test_home_that_others_enter_has_no_file_that_they_can_read(tmp_path: Path) -> None:
    """Whoever made the folder beforehand, or copied it, left it open."""
    home, manifest = tmp_path / "home", tmp_path / "cities.yaml"
    manifest.write_text(MANIFEST)
    home.mkdir()
    home.chmod(0o777)
    umask = os.umask(0)
    try:
        rows = b'{"city": "Oslo", "people": 1}\n'
        for words, given in (
            (["add", str(manifest)], b""),
            (["ingest", "cities", "--stdin"], rows),
            (["token", "create", "me"], b""),
            (["login", "http://127.0.0.1:9", "--access-token", SECRET], b""),
        ):
            run_command(home, *words, given=given)
        run_command(home, "list")
    finally:
        os.umask(umask)
    assert (home / "odf-node.sqlite").is_file()
    assert list((home / "keys" / "datasets").iterdir())
    readable = [
        str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and path.stat().st_mode & 0o077
    ]
    assert readable == []
