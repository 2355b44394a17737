"""A publisher's home, what its machine remembers, and the files of its recovery keys: one folder that can be copied."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.recovery_key_files import read_recovery_key
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.keys.logs import KeyLogs
from odf_protocol.did import DidKey
from odf_protocol.heads import verify_head
from odf_protocol.key_history import KeyHistory
from support.offers import NOW, Judge, PublisherHome, root_chain
from support.own_datasets import record_of, write

KEY_COMMANDS: Final = {
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
    """The folder; marks are in ``marks``, where the test has the variable point."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, scratch: Path) -> "Place":
        """Write a dataset of three blocks."""
        place = cls(folder)
        PublisherHome(Judge.create(folder / "home")).keep(root_chain(scratch).up_to(2))
        return place

    def key(self, action: str, *words: str) -> int:
        """Run ``odf-node key``; ``{folder}`` in a word is this one."""
        arguments = [word.format(folder=self.folder) for word in words]
        return main(["--home", str(self.folder / "home"), "key", action, *arguments])

    def open(self) -> Node:
        """Open the home."""
        return Node(HomeFolder(self.folder / "home"), FixedClock(NOW))

    @property
    def history(self) -> KeyHistory:
        """The key log."""
        with closing(self.open()) as node:
            return KeyLogs(node.store).get_history(record_of(node).id)

    def look_at(self, before: KeyHistory) -> int:
        """Judge what a command left that was ended; say how many events it had made."""
        history = self.history
        made = len(history.events) - len(before.events)
        assert made in {0, 1}
        named = history.recovery_key
        if named is not None:
            # Whatever was named is in a file: without it the dataset could never be taken back.
            files = [path for path in self.folder.glob("*.pem") if path.stat().st_size]
            assert named in {DidKey(read_recovery_key(path).public_key()) for path in files}
        with closing(self.open()) as node:
            assert node.keys.find_signing_key(history.current_key) is not None
            signed = node.store.find_signed_head(record_of(node).id)
            assert signed is not None
            assert verify_head(signed.raw, history.dataset_id, keys=history).signer == (
                history.current_key if made and history.events[-1].new_key else before.current_key
            )
        return made

    def write_on(self, text: str) -> None:
        """Add a block by the key in force, and verify all of it."""
        with closing(self.open()) as node:
            write(node, text)
            assert node.verifier.verify(record_of(node), on_progress=print).problem == ""
