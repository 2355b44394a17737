"""``odf-node key`` on a disk that rejects single writes, or all from one on: no key is lost, and it works later.

Source: clauses KEY-17 to KEY-19 in ``spec/extensions/keys.md``.
"""

import errno
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from odf_node.adapters.key_files import FOLDER_VARIABLE
from support.key_places import KEY_COMMANDS, Place
from support.syscall_steps import CAN_REJECT, Step, run_rejected

pytestmark = [
    pytest.mark.skipif(not CAN_REJECT, reason="makes system calls of Linux on x86-64 fail"),
    pytest.mark.timeout(900),
]

_NEEDS_NO_ROOM: Final = {"unlink", "unlinkat", "chmod", "fchmod", "fchmodat"}
_SYNCS: Final = {"fsync", "fdatasync"}


@contextmanager
def beside(place: Place) -> Iterator[None]:
    """Let another process have the home open, as a daemon does; a commit of it stands in the log of the database."""
    program = (
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[1])\n"
        "from support.key_places import Place\n"
        "node = Place(Path(sys.argv[2])).open()\nnode.record('serve', 'cities')\nprint(flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parents[1]), str(place.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        yield
        process.kill()


def _is_full(step: Step, *, is_first: bool) -> int:
    """Nothing that needs room is written from now on, nor what was written and waits for its place."""
    return 0 if step.call in _NEEDS_NO_ROOM else errno.ENOSPC


def _is_read_only(step: Step, *, is_first: bool) -> int:
    """The disk turns read-only, as Linux has it after a failure."""
    return errno.EROFS


def _loses_syncs(step: Step, *, is_first: bool) -> int:
    """What is written is there for this process, and does not reach the disk."""
    return errno.EIO if step.call in _SYNCS else 0


def _fails_once(step: Step, *, is_first: bool) -> int:
    """One write finds no room, the next ones do."""
    return errno.ENOSPC if is_first and step.call not in _NEEDS_NO_ROOM else 0


_FAULTS: Final = {"full": _is_full, "read-only": _is_read_only, "syncs": _loses_syncs, "once": _fails_once}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "now" / "marks"))
    return Place.create(tmp_path / "now", tmp_path)


@dataclass(frozen=True)
class Outcome:
    """Exit code, what was said on standard error, and the steps that were begun."""

    code: int
    reported: str
    steps: tuple[Step, ...]


def run_with_fault(place: Place, command: tuple[str, ...], reject: Callable[[int, Step], int]) -> Outcome:
    """Run a command in a child; of its steps, ``refuse`` is asked about those in the folder of ``place``."""
    report = place.folder.parent / "outcome"

    def change() -> None:
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        report.write_text(json.dumps([place.key(*command), sys.stderr.getvalue()]))

    run = run_rejected(
        change, lambda number, step: reject(number, step) if step.path.is_relative_to(place.folder) else 0
    )
    code, reported = json.loads(report.read_text())
    return Outcome(code, reported, run.steps)


def telling_steps(steps: tuple[Step, ...], folder: Path) -> list[int]:
    """Number the steps in a folder, of many alike in a row the first and the last."""
    alike = [(step.call, step.path) for step in steps]
    return [
        number
        for number, step in enumerate(steps, 1)
        if step.path.is_relative_to(folder) and alike[number - 2 : number + 1] != [alike[number - 1]] * 3
    ]


@pytest.mark.parametrize("fault", _FAULTS)
@pytest.mark.parametrize("name", ["rotate", "prepare", "recover-and-name-the-next"])
def test_change_of_a_key_on_a_disk_that_rejects_writes_loses_no_key_and_works_when_given_again_key_18(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: str
) -> None:
    """KEY-17, KEY-18: at each step; what a failed commit left may be true for the next process."""
    command = KEY_COMMANDS[name]
    if "{folder}/stick.pem" in command:
        assert place.key("prepare", "cities", "--to", "{folder}/stick.pem") == 0
    before = place.history

    def copied(to: str) -> Place:
        copy = Place(tmp_path / to)
        shutil.copytree(place.folder, copy.folder)
        monkeypatch.setenv(FOLDER_VARIABLE, str(copy.folder / "marks"))
        return copy

    whole = copied("whole")
    outcome = run_with_fault(whole, command, lambda number, step: 0)
    assert outcome.code == 0
    codes = []
    for first in telling_steps(outcome.steps, whole.folder):
        copy = copied(f"step-{first}")

        def reject(number: int, step: Step, first: int = first) -> int:
            return _FAULTS[fault](step, is_first=number == first) if number >= first else 0

        found = run_with_fault(copy, command, reject)
        codes.append(found.code)
        made = copy.look_at(before)
        if found.code:
            assert len(found.reported.splitlines()) == 2, (outcome.steps[first - 1], found.code, found.reported)
            note, problem = found.reported.splitlines()
            assert "the same command may be given again" in note
            assert problem.startswith("odf-node key: ")
            assert copy.key(*command) == 0
            assert (
                copy.look_at(before) if name != "rotate" else len(copy.history.events) == len(before.events) + made + 1
            )
            copy.write_on("the next block")
        else:
            assert made == 1
        shutil.rmtree(copy.folder)
    assert set(codes) == {0, 5}


def test_recovery_key_is_in_its_file_where_the_commit_that_failed_is_true_after_a_power_cut_key_18(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEY-18: the log's bytes were written and not confirmed; the file was removed, and then the log named its key."""
    before, stick = place.history, tmp_path / "stick"
    stick.mkdir()
    command = ("prepare", "cities", "--to", str(stick / "made.pem"))
    with beside(place):  # the log of the database is in use, and stays
        outcome = run_with_fault(
            place, command, lambda number, step: errno.EIO if step.call in _SYNCS and "wal" in step.path.name else 0
        )
        assert outcome.code == 5
        assert place.history == before
        after = Place(tmp_path / "after")
        shutil.copytree(place.folder, after.folder, ignore=lambda folder, names: {"odf-node.sqlite-shm"} & {*names})
    shutil.copy(stick / "made.pem", after.folder)

    monkeypatch.setenv(FOLDER_VARIABLE, str(after.folder / "marks"))
    assert after.look_at(before) == 1
    assert after.key(*command) == 0
    assert after.key("show", "cities") == 0
