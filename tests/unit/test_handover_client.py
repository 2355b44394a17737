"""What a command decides and sends before anything is loaded (HAND-1, HAND-2, HAND-6)."""

import os
import socket
from pathlib import Path

import pytest

from odf_node.cli.main import COMMANDS
from odf_node.handover.client import HANDED_OVER, UNAVAILABLE, _await_end, find_command_and_home, hand_over
from odf_node.handover.fork_server import PRELOADED
from odf_node.handover.request import LENGTH_BYTES, decode_request, encode_request, identity_of_program
from odf_node.home import find_default_home


def test_request_is_read_as_it_was_written() -> None:
    words = ["pull", "", "na\udcffme", "--as", "x=y"]
    message = encode_request(words, {b"A": b"1=2", b"EMPTY": b"", b"ODD": b"\xff"})
    assert int.from_bytes(message[:LENGTH_BYTES], "big") == len(message) - LENGTH_BYTES
    assert decode_request(message[LENGTH_BYTES:]) == (
        identity_of_program(),
        words,
        {"A": "1=2", "EMPTY": "", "ODD": "\udcff"},
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"\0", b"too\0few\0", encode_request(["list"], {})[LENGTH_BYTES:-1], b"a\0" * 6 + b"9\0list\0"],
    ids=["empty", "one-field", "few-fields", "cut-off", "fewer-words-than-it-says"],
)
def test_request_of_another_form_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="request"):
        decode_request(body)


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "/data"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "relative"},
        {"HOME": "/home/ada", "ODF_NODE_HOME": ""},
        {"HOME": "/home/ada", "ODF_NODE_HOME": "~/node", "XDG_DATA_HOME": "/data"},
    ],
    ids=["home", "data-folder", "relative-data-folder", "empty-variable", "variable"],
)
def test_home_is_the_one_that_the_command_will_use(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "ODF_NODE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_command_and_home(["list"]) == ("list", str(find_default_home(os.environ)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--home", "/a", "pull", "--home=/b"], ("pull", "/b")),
        (["-q", "--system-time", "T", "list", "--home", "/a"], ("list", "/a")),
        (["--", "list"], (None, "/h")),
        (["list", "--home"], ("list", None)),
    ],
)
def test_command_and_home_are_found_among_the_words(
    monkeypatch: pytest.MonkeyPatch, words: list[str], expected: tuple[str | None, str | None]
) -> None:
    monkeypatch.setenv("ODF_NODE_HOME", "/h")
    assert find_command_and_home(words) == expected


def test_commands_that_are_handed_over_exist_and_are_loaded_before() -> None:
    assert set(COMMANDS) > HANDED_OVER
    assert set(PRELOADED) > {f"odf_node.cli.commands.{name}" for name in HANDED_OVER}


def test_socket_that_nobody_listens_to_leaves_the_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "staging" / "commands"
    folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(os.path.relpath(folder / "commands.sock"))
    assert hand_over(["list", "--home", str(tmp_path)]) is None


def test_client_whose_worker_and_fork_server_were_killed_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    line, server = socket.socketpair()
    channel, worker = socket.socketpair()
    with line, channel:
        server.close()
        worker.close()
        assert _await_end(line, channel, "pull") == UNAVAILABLE
    assert capsys.readouterr().err == (
        "odf-node pull: the daemon that ran this command was killed; what was finished is kept, run it again\n"
    )
