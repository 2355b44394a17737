"""Folders ``.git`` that somebody else put above a program, and programs that are no files: nothing waits for them, and
nothing of theirs is recorded.

Source: clause AUDIT-3 in ``spec/plug-ins/audit.md``.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from odf_audit.programs import find_repository, hash_script, read_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_USER = 12_345


def made(folder: Path, name: str = "HEAD") -> Path:
    place = folder / ".git" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def pipe(folder: Path) -> None:
    os.mkfifo(made(folder))


def pipe_as_reference(folder: Path) -> None:
    made(folder).write_text("ref: refs/heads/main")
    os.mkfifo(made(folder, "refs/heads/main"))


def pipe_of_packed_references(folder: Path) -> None:
    made(folder).write_text("ref: refs/heads/main")
    os.mkfifo(made(folder, "packed-refs"))


def pipe_as_common_folder(folder: Path) -> None:
    made(folder).write_text("ref: refs/heads/main")
    os.mkfifo(made(folder, "commondir"))


def pipe_elsewhere(folder: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {folder / 'elsewhere'}")
    (folder / "elsewhere").mkdir()
    os.mkfifo(folder / "elsewhere" / "HEAD")


def link_to_a_device(folder: Path) -> None:
    made(folder).symlink_to("/dev/zero")


def no_commit(folder: Path) -> None:
    made(folder).write_text("0" * 39)


def no_text(folder: Path) -> None:
    made(folder).write_bytes(b"\xff" * 40)


def reference_outside(folder: Path) -> None:
    (folder / "secret").write_text(COMMIT)
    made(folder).write_text("ref: ../secret")


def references_without_end(folder: Path) -> None:
    made(folder).write_text("ref: x")
    made(folder, "packed-refs").write_text(f"{COMMIT} y\n" * 100_000)


FALSE: tuple[Callable[[Path], None], ...] = (
    pipe,
    pipe_as_reference,
    pipe_of_packed_references,
    pipe_as_common_folder,
    pipe_elsewhere,
    link_to_a_device,
    no_commit,
    no_text,
    reference_outside,
    references_without_end,
)


@pytest.mark.parametrize("lie", FALSE)
def test_repository_that_is_none_has_no_commit_and_is_not_waited_for(
    tmp_path: Path, lie: Callable[[Path], None]
) -> None:
    """AUDIT-3: a pipe in the place of HEAD held up every program below it for ever."""
    lie(tmp_path)
    found: list[object] = []

    thread = threading.Thread(target=lambda: found.append(read_commit(tmp_path / ".git")), daemon=True)
    thread.start()
    thread.join(20)

    assert found == [None]


def test_repository_of_another_user_above_a_program_is_none(tmp_path: Path) -> None:
    """AUDIT-3: in a folder of all, such as /tmp, anybody could choose the commit that is recorded."""
    script = tmp_path / "work" / "job.py"
    script.parent.mkdir()
    script.write_text("x")
    made(tmp_path).write_text(COMMIT)
    assert find_repository(script) == tmp_path / ".git"

    if os.geteuid() == 0:
        os.chown(tmp_path / ".git", OTHER_USER, OTHER_USER)
        assert find_repository(script) is None
        os.chown(script, OTHER_USER, OTHER_USER)
        assert find_repository(script) == tmp_path / ".git"


def test_program_that_is_a_pipe_or_huge_has_no_hash_and_is_not_waited_for(tmp_path: Path) -> None:
    """AUDIT-3"""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "huge.py").touch()
    os.truncate(tmp_path / "huge.py", 1 << 40)
    found: list[object] = []
    names = ("pipe.py", "huge.py", "none.py", ".")

    thread = threading.Thread(target=lambda: found.extend(hash_script(tmp_path / each) for each in names), daemon=True)
    thread.start()
    thread.join(20)

    assert found == [None] * len(names)
