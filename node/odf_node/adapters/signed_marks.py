"""What each key of this machine signed last, kept outside of any home: a home that was restored from a backup is older.

Small files per dataset, ``$XDG_STATE_HOME/odf-node/signed/<public key>`` for the newest block, and with ``.keys``
behind it for the newest key event; ``ODF_NODE_SIGNED_MARKS`` names another folder, and empty, none. A memory that
cannot be read or written is no memory: it is a second line behind what other nodes have seen.

Source: clauses HEAD-9 in ``spec/extensions/heads.md`` and KEY-19 in ``spec/extensions/keys.md``.
"""

import os
import secrets
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash

FOLDER_VARIABLE: Final = "ODF_NODE_SIGNED_MARKS"


class MarkKind(StrEnum):
    """What was signed; the value ends the file's name."""

    BLOCK = ""
    KEY_EVENT = ".keys"


def read_mark(dataset_id: DatasetId, kind: MarkKind = MarkKind.BLOCK) -> tuple[int, Multihash] | None:
    """Return number and hash of the newest block or key event that this machine remembers to have signed, or None."""
    path = _path_of(dataset_id, kind)
    if path is None:
        return None
    try:
        number, block_hash = path.read_text("ascii").split()
        return int(number), Multihash.parse(block_hash)
    except (OSError, ValueError, OdfError):
        return None


def write_mark(dataset_id: DatasetId, number: int, hash_: Multihash, kind: MarkKind = MarkKind.BLOCK) -> None:
    """Remember that a block or key event was signed; the file is replaced whole."""
    path = _path_of(dataset_id, kind)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        draft.write_text(f"{number} {hash_}\n", "ascii")
        draft.replace(path)


def _path_of(dataset_id: DatasetId, kind: MarkKind) -> Path | None:
    name = f"{dataset_id.public_key.hex()}{kind.value}"
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "":
        return None
    if named is not None:
        return Path(named) / name
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base / "odf-node" / "signed" / name
