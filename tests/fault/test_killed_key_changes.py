"""``odf-node key`` killed before each single step: the old key speaks or the new one, and the next command works.

Source: clauses KEY-17 to KEY-19 in ``spec/extensions/keys.md``.
"""

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.adapters.recovery_key_files import read_recovery_key
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.home import Home
from odf_node.keys.logs import KeyLogs
from odf_protocol.did import DidKey
from odf_protocol.heads import verify_head
from odf_protocol.key_history import KeyHistory
from support.offers import NOW, Judge, PublisherHome, root_chain
from support.own_datasets import record_of, write
from support.syscall_steps import SUPPORTED, run_step_by_step

pytestmark = [
    pytest.mark.skipif(not SUPPORTED, reason="traces system calls of Linux on x86-64 and ARM64"),
    pytest.mark.timeout(900),
]

GONE_ON_EVERY = 13

COMMANDS = {
    "rotate": ("rotate", "cities"),
    "prepare": ("prepare", "cities", "--to", "{folder}/made.pem"),
    "prepare-again": ("prepare", "cities", "--with", "{folder}/stick.pem", "--to", "{folder}/made.pem"),
    "recover": ("recover", "cities", "--with", "{folder}/stick.pem", "--stolen-from", "1"),
    "recover-and-name-the-next": (
        *("recover", "cities", "--with", "{folder}/stick.pem", "--stolen-from", "1"),
        *("--next", "{folder}/made.pem"),
    ),
}


@dataclass(frozen=True)
class Place:
    """A folder with a publisher's home, what its machine remembers, and the files of its recovery keys."""

    folder: Path

    def key(self, action: str, *words: str) -> int:
        arguments = [word.format(folder=self.folder) for word in words]
        return main(["--home", str(self.folder / "home"), "key", action, *arguments])

    def open(self) -> Node:
        return Node(Home(self.folder / "home"), FixedClock(NOW))

    @property
    def history(self) -> KeyHistory:
        with closing(self.open()) as node:
            return KeyLogs(node.store, node.store).get_history(record_of(node).id)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "now" / "marks"))
    place = Place(tmp_path / "now")
    PublisherHome(Judge.create(place.folder / "home")).keep(root_chain(tmp_path).up_to(2))
    return place


def look_at(place: Place, before: KeyHistory) -> int:
    """Judge what a kill would leave; say how many events the killed command had made."""
    history = place.history
    made = len(history.events) - len(before.events)
    assert made in {0, 1}
    named = history.recovery_key
    if named is not None:
        # Whatever was named is in a file: without it the dataset could never be taken back.
        files = [path for path in place.folder.glob("*.pem") if path.stat().st_size]
        assert named in {DidKey(read_recovery_key(path).public_key()) for path in files}
    with closing(place.open()) as node:
        signed = node.store.find_signed_head(record_of(node).id)
        assert signed is not None
        assert verify_head(signed.raw, history.dataset_id, keys=history).signer == (
            history.current_key if made and history.events[-1].new_key else before.current_key
        )
    return made


def go_on_from(place: Place, before: KeyHistory, command: tuple[str, ...], *, is_made: bool) -> None:
    """Write, give the command again where it did nothing, and change the key once more."""
    with closing(place.open()) as node:
        write(node, "the next block")
        assert node.verifier.verify(record_of(node), say=print).problem == ""
    if not is_made:
        words = [word.replace("made.pem", "second.pem") for word in command]
        assert place.key(*words) == 0
        assert len(place.history.events) == len(before.events) + 1
    assert place.key("rotate", "cities") == 0
    with closing(place.open()) as node:
        write(node, "and one by a newer key")
        assert node.verifier.verify(record_of(node), say=print).problem == ""
        node.sweeper.clean_up()
        assert [path.name for path in node.home.staging.iterdir() if path.is_file()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_change_of_a_key_that_is_killed_before_any_step_happened_or_did_not_key_17(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """KEY-17, KEY-18: never a key that speaks and is nowhere, nor a recovery key that was named and is in no file."""
    command = COMMANDS[name]
    if "{folder}/stick.pem" in command:
        assert place.key("prepare", "cities", "--to", "{folder}/stick.pem") == 0
    before, seen = place.history, list[int]()

    def before_step(number: int) -> None:
        copy = Place(tmp_path / f"step-{number}")
        shutil.copytree(place.folder, copy.folder)
        with monkeypatch.context() as there:
            there.setenv(FOLDER_VARIABLE, str(copy.folder / "marks"))
            seen.append(look_at(copy, before))
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
