"""Commands that write, killed before steps of theirs: nothing is lost, and the same command works again.

Commands that start processes or threads are killed as a whole elsewhere (``test_killed_commands.py``): those would not
be traced. Which steps: so many of each command, evenly; ``ODF_KILLED_STEPS=1000`` looks at every one.

Source: clauses HOME-8 to HOME-13 in ``spec/home.md``.
"""

import os
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from support.offers import NOW, Judge, PublisherHome, root_chain
from support.syscall_steps import SUPPORTED, run_step_by_step

pytestmark = [
    pytest.mark.skipif(not SUPPORTED, reason="traces system calls of Linux on x86-64 and ARM64"),
    pytest.mark.timeout(1800),
]

LOOKED_AT = int(os.environ.get("ODF_KILLED_STEPS", "6"))
MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - {{kind: SetInfo, description: Where people live}}
"""
CHANGES = "kind: MetadataEvent\nversion: 1\ncontent: {kind: SetInfo, description: Something else}\n"
DONE = 0


@dataclass(frozen=True)
class Command:
    """What is run; the codes with which it may end when it is given again after it was done; what there is then."""

    words: tuple[str, ...]
    again: tuple[int, ...] = (DONE,)
    names: frozenset[str] = frozenset({"cities", "towns"})


COMMANDS = {
    "add": Command(("add", "{folder}/rivers.yaml"), (0, 1, 2, 6, 7), frozenset({"cities", "towns", "rivers"})),
    "rename": Command(("rename", "cities", "places"), (0, 1, 2, 3, 4), frozenset({"places", "towns"})),
    "change": Command(("change", "cities", "{folder}/changes.yaml")),
    "delete": Command(("delete", "cities", "-y"), (0, 1, 2, 3, 4), frozenset({"towns"})),
    "gc": Command(("gc",)),
    "publish": Command(("publish", "--off", "cities")),
    "backup": Command(("backup", "{folder}/backup.tar"), (0, 1, 2)),
    "backup-folder": Command(("backup", "{folder}/backup")),
}


@dataclass(frozen=True)
class Place:
    """A folder with a home and all that a command is given."""

    folder: Path

    def run(self, *words: str) -> int:
        return main(["--home", str(self.folder / "home"), *(word.format(folder=self.folder) for word in words)])

    def open(self) -> Node:
        return Node(HomeFolder(self.folder / "home"), FixedClock(NOW))

    @property
    def names(self) -> frozenset[str]:
        with closing(self.open()) as node:
            return frozenset(each.name for each in node.store.list_datasets())

    def copy(self, folder: Path) -> "Place":
        shutil.copytree(self.folder, folder)
        return Place(folder)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv(FOLDER_VARIABLE, "")
    place = Place(tmp_path / "now")
    place.folder.mkdir()
    (place.folder / "rivers.yaml").write_text(MANIFEST.format(name="rivers"))
    (place.folder / "towns.yaml").write_text(MANIFEST.format(name="towns"))
    (place.folder / "changes.yaml").write_text(CHANGES)
    PublisherHome(Judge.create(place.folder / "home")).keep(root_chain(tmp_path))
    assert place.run("add", "{folder}/towns.yaml") == DONE
    return place


def count_steps(place: Place, words: tuple[str, ...]) -> int:
    return len(run_step_by_step(lambda: _must(place, words), lambda _number: None).steps)


def _must(place: Place, words: tuple[str, ...]) -> None:
    assert place.run(*words) == DONE


def assert_sound(place: Place) -> None:
    """All that looks for damage finds none, and nothing lies about after the next sweep."""
    for words in (("status",), ("verify", "%"), ("scrub",), ("gc",)):
        assert place.run(*words) == DONE, words
    with closing(place.open()) as node:
        held = set(node.objects.iter_hashes())
        assert held == set(node.store.list_referenced_objects())
        assert [path.name for path in node.home.folder.staging.iterdir() if path.is_file()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_command_that_is_killed_before_any_step_leaves_a_sound_home_and_works_again_home_8(
    place: Place, tmp_path: Path, name: str
) -> None:
    """HOME-8: what a kill leaves is the old state or the new one; the command given again comes to the new one."""
    command = COMMANDS[name]
    before = place.names
    count = count_steps(place.copy(tmp_path / "counted"), command.words)
    chosen = {1 + (count - 1) * each // max(1, LOOKED_AT - 1) for each in range(LOOKED_AT)} | {count}
    looked: list[int] = []

    def before_step(number: int) -> None:
        if number not in chosen and count > LOOKED_AT:
            return
        killed = place.copy(tmp_path / f"step-{number}")
        found = killed.names
        assert found in {before, command.names}
        assert_sound(killed)
        ended = killed.run(*command.words)
        assert ended == DONE or (found == command.names and ended in command.again)
        assert killed.names == command.names
        assert_sound(killed)
        shutil.rmtree(killed.folder)
        looked.append(number)

    run_step_by_step(lambda: _must(place, command.words), before_step)
    assert len(looked) >= min(2, count)
    assert place.names == command.names
    assert_sound(place)


def test_journal_that_ends_at_any_byte_holds_the_old_state_or_the_new_one_home_8(place: Place, tmp_path: Path) -> None:
    """HOME-8: a machine that loses power keeps as much of what was written last as it likes."""
    command, before = COMMANDS["rename"], place.names
    longest, kept = 0, None

    def keep_the_longest(number: int) -> None:
        nonlocal longest, kept
        size = sum(path.stat().st_size for path in (place.folder / "home").glob("*-wal"))
        if size > longest:
            longest, kept = size, place.copy(tmp_path / f"kept-{number}")

    run_step_by_step(lambda: _must(place, command.words), keep_the_longest)

    assert kept is not None
    found = set()
    for end in sorted({0, 1, 31, 32, 33, longest - 1, longest, *range(0, longest, 1 + longest // (2 * LOOKED_AT))}):
        cut = kept.copy(tmp_path / f"cut-{end}")
        (journal,) = (cut.folder / "home").glob("*-wal")
        os.truncate(journal, end)
        found.add(cut.names)
        assert_sound(cut)
        shutil.rmtree(cut.folder)
    assert found == {before, command.names}
