"""Homes of a program that is started again: a copy stands for the home that it names, and no key of it is there.

Source: clauses AUDIT-21 and AUDIT-23 in ``spec/plug-ins/audit.md``.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from odf_node.adapters.key_files import KeyFiles
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_node.ports.keys import PrivateKey
from odf_protocol.did import DatasetId

RERUN_VARIABLE: Final = "ODF_NODE_RERUN_OF"
"""Names the run that this process runs again."""
COPY_VARIABLE: Final = "ODF_NODE_RERUN_HOME"
"""JSON: the home of that run, and the folder with its copy. Without the other variable it means nothing."""

_STAND_INS: Final = "stand-ins"


def find_copied_home(folder: Path, environment: Mapping[str, str]) -> Path:
    """Give the folder that a program opens where it names a home: in a rerun, that of the copy.

    Args:
        folder: As it was named, absolute.
        environment: Of the process.

    Raises:
        UsageError: This is a rerun, and there is no copy of the home.
    """
    named = _read_places(environment)
    if named is None:
        return folder
    home, copy = named
    resolved = folder.resolve()
    if resolved in {home, copy}:
        return copy
    if HomeFolder(folder).exists() and not resolved.is_relative_to(copy):
        raise UsageError(
            f"this is run {environment[RERUN_VARIABLE]} again, which works on a copy of {home} alone: it may not open"
            f" {folder}"
        )
    return folder


def open_keys(home: HomeFolder) -> KeyFiles:
    """Give the keys of a home; those of a copy are stand-ins."""
    named = _read_places(os.environ)
    return StandInKeys(home) if named is not None and home.path.resolve() == named[1] else KeyFiles(home)


def put_stand_in(home: HomeFolder, dataset_id: DatasetId) -> None:
    """Let a dataset of a copy be written in a rerun, without its key."""
    folder = home.keys / _STAND_INS
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / dataset_id.public_key.hex()).touch(mode=0o600)


def describe_places(run: str, home: Path, copy: Path) -> dict[str, str]:
    """Give the variables with which a program runs again."""
    return {RERUN_VARIABLE: run, COPY_VARIABLE: json.dumps([str(home.resolve()), str(copy.resolve())])}


class StandInKeys(KeyFiles):
    """Keys of a copied home. What is written of its datasets is signed by the copy's own node, which proves nothing.

    With the real key there would be two signed histories of one dataset, which prove its owner a liar.
    """

    def find_dataset_key(self, dataset_id: DatasetId) -> PrivateKey | None:
        """See ``KeyStore``; of a copied dataset that the run wrote it is the node's key."""
        found = super().find_dataset_key(dataset_id)
        if found is None and (self._home.keys / _STAND_INS / dataset_id.public_key.hex()).is_file():
            return self.get_or_create_node_key()
        return found


def _read_places(environment: Mapping[str, str]) -> tuple[Path, Path] | None:
    if not environment.get(RERUN_VARIABLE) or not (text := environment.get(COPY_VARIABLE)):
        return None
    try:
        home, copy = json.loads(text)
        return Path(home), Path(copy)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{COPY_VARIABLE}: expected what 'odf-node audit rerun' sets; unset it") from error
