"""What the operator of a restored home is told before an old state of it signs anything (HOME-44, HOME-55)."""

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from odf_node.adapters.home_backup import back_up
from odf_node.adapters.key_backup import back_up_keys, restore_keys
from odf_node.adapters.key_files import FOLDER_VARIABLE, KeyFiles
from odf_node.cli.main import main
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeFullError
from support.key_places import Place
from support.syscall_steps import CAN_REJECT, run_rejected


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A publisher with a backup, and a change of key after it."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))
    place = Place.create(tmp_path / "now", tmp_path)
    home = HomeFolder(place.folder / "home")
    KeyFiles(home).get_or_create_node_key()
    back_up(home, tmp_path / "backup", lambda _: None)
    back_up_keys(home, tmp_path / "keys.tar")
    assert place.key("rotate", "cities") == 0
    place.write_on("after the backup")
    back_up_keys(home, tmp_path / "newer.tar")
    return place


Restored = Callable[..., str]


@pytest.fixture
def restored(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Restored:
    """Restore into another home, and return what was said."""

    def run(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main(["--home", str(tmp_path / "other"), "restore", *words]) == code
        shown = capsys.readouterr()
        return shown.out + shown.err

    return run


def test_operator_is_told_at_the_restore_that_own_datasets_may_be_old(
    restored: Restored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "another machine"))
    reported = restored(str(tmp_path / "backup"), "--keys", str(tmp_path / "keys.tar"))
    assert "1 dataset of this node's own may be older than what was published" in reported
    assert "odf-node evidence recover NAME --from URL" in reported
    assert "this machine remembers" not in reported


def test_machine_that_signed_more_says_so_at_the_restore(restored: Restored, tmp_path: Path) -> None:
    reported = restored(str(tmp_path / "backup"), "--keys", str(tmp_path / "keys.tar"))
    assert "cities: this machine remembers that it made key event 0" in reported


def test_restore_without_keys_warns_of_no_second_history(restored: Restored, tmp_path: Path) -> None:
    reported = restored(str(tmp_path / "backup"))
    assert "without --keys FILE" in reported
    assert "older than what was published" not in reported


def test_newer_keys_are_put_into_the_home_that_is_there_and_replace_none(restored: Restored, tmp_path: Path) -> None:
    """HOME-44: the way back that 'key recover' and 'evidence recover' name."""
    assert "name the backup" in restored("--keys", str(tmp_path / "newer.tar"), code=2)
    restored(str(tmp_path / "backup"), "--keys", str(tmp_path / "keys.tar"))
    folder = tmp_path / "other" / "keys" / "datasets"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "1 private key put back" in restored("--keys", str(tmp_path / "newer.tar"))
    assert "0 private keys put back" in restored("--keys", str(tmp_path / "newer.tar"))
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(after) == len(before) + 1
    assert before.items() < after.items()
    assert "name the backup" in restored(code=2)


def test_disk_that_fills_up_leaves_no_half_of_a_key_and_the_same_command_goes_on(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOME-44: a key that was cut was one that is there, and stayed so for ever."""
    home = HomeFolder(tmp_path / "other")
    real = io.FileIO.write
    left = [200]

    class Full(io.FileIO):
        def write(self, data: object) -> int:  # type: ignore[override]
            if left[0] <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            part = memoryview(data)[: left[0]]  # type: ignore[arg-type]
            left[0] -= len(part)
            return real(self, part)

    with monkeypatch.context() as full:
        full.setattr("odf_node.adapters.key_files.os.fdopen", lambda fd, mode, buffering=0: Full(fd, mode))
        with pytest.raises(HomeFullError):
            restore_keys(home, tmp_path / "newer.tar")
    whole = {path.read_bytes() for path in (place.folder / "home" / "keys").rglob("*.pem")}
    assert {path.read_bytes() for path in home.keys.rglob("*.pem")} < whole
    restore_keys(home, tmp_path / "newer.tar")
    assert {path.read_bytes() for path in home.keys.rglob("*.pem")} == whole
    assert [path for path in home.staging.iterdir() if path.is_file() and path.name.startswith("key-")] == []


@pytest.mark.skipif(not CAN_REJECT, reason="makes system calls of Linux on x86-64 fail")
def test_file_of_keys_that_finds_no_room_is_not_there(place: Place, tmp_path: Path) -> None:
    """HOME-42: half of the keys would be taken for all of them, and the second try rejected."""
    home, target = HomeFolder(place.folder / "home"), tmp_path / "all.tar"

    def write() -> None:
        with pytest.raises(HomeFullError):
            back_up_keys(home, target)

    run = run_rejected(write, lambda number, step: errno.ENOSPC if (step.call, step.path) == ("write", target) else 0)
    assert ("write", target) in {(step.call, step.path) for step in run.steps}
    assert not target.exists()
    assert back_up_keys(home, target) == 3
