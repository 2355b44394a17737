"""``odf-node key`` killed before each single step: the old key speaks or the new one, and the next command works.

Source: clauses KEY-17 to KEY-19 in ``spec/extensions/keys.md``.
"""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.adapters.recovery_key_files import find_unfinished_key
from odf_protocol.key_history import KeyHistory
from support.key_places import KEY_COMMANDS, Place
from support.syscall_steps import SUPPORTED, run_step_by_step

pytestmark = [
    pytest.mark.skipif(not SUPPORTED, reason="traces system calls of Linux on x86-64 and ARM64"),
    pytest.mark.timeout(900),
]

GONE_ON_EVERY = 13


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "now" / "marks"))
    return Place.create(tmp_path / "now", tmp_path)


def go_on_from(place: Place, before: KeyHistory, command: tuple[str, ...], *, is_made: bool) -> None:
    """Give the command again where it did not end, write, and change the key once more."""
    unfinished = find_unfinished_key(before.dataset_id)
    if unfinished is not None:
        assert unfinished.key not in before.recovery_keys
    if not is_made or unfinished is not None:
        assert place.key(*command) == 0
        assert len(place.history.events) == len(before.events) + 1
        assert place.look_at(before) == 1
    place.write_on("the next block")
    assert place.key("rotate", "cities") == 0
    place.write_on("and one by a newer key")
    with closing(place.open()) as node:
        node.sweeper.clean_up()
        assert [path.name for path in node.home.folder.staging.iterdir() if path.is_file()] == []


@pytest.mark.parametrize("name", KEY_COMMANDS)
def test_change_of_a_key_that_is_killed_before_any_step_happened_or_did_not_key_17(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """KEY-17, KEY-18: never a key that speaks and is nowhere, nor a recovery key that was named and is in no file."""
    command = KEY_COMMANDS[name]
    if "{folder}/stick.pem" in command:
        assert place.key("prepare", "cities", "--to", "{folder}/stick.pem") == 0
    before, seen = place.history, list[int]()

    def before_step(number: int) -> None:
        copy = Place(tmp_path / f"step-{number}")
        shutil.copytree(place.folder, copy.folder)
        with monkeypatch.context() as there:
            there.setenv(FOLDER_VARIABLE, str(copy.folder / "marks"))
            seen.append(copy.look_at(before))
            # To go on takes longer: after the first step, around the one that counts, and now and then.
            if seen[-2:] != [seen[-1]] * 2 or number % GONE_ON_EVERY == 0:
                go_on_from(copy, before, command, is_made=bool(seen[-1]))
        shutil.rmtree(copy.folder)

    def change() -> None:
        assert place.key(*command) == 0

    run = run_step_by_step(change, before_step)

    assert run.completed
    assert len(place.history.events) == len(before.events) + 1
    # The change happens at one step, and stays.
    assert seen == sorted(seen)
    assert {0, 1} == set(seen)
