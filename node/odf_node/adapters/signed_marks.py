"""What each key of this machine signed last, kept outside of any home: a home that was restored from a backup is older.

One small file per dataset, ``$XDG_STATE_HOME/odf-node/signed/<public key>``; ``ODF_NODE_SIGNED_MARKS`` names another
folder, and empty, none. A memory that cannot be read or written is no memory: it is a second line behind what other
nodes have seen.

Source: clause HEAD-9 in ``spec/extensions/heads.md``.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash

FOLDER_VARIABLE: Final = "ODF_NODE_SIGNED_MARKS"


def read_mark(dataset_id: DatasetId) -> tuple[int, Multihash] | None:
    """Return number and hash of the newest block that this machine remembers to have signed, or None."""
    path = _path_of(dataset_id)
    if path is None:
        return None
    try:
        number, block_hash = path.read_text("ascii").split()
        return int(number), Multihash.parse(block_hash)
    except (OSError, ValueError, OdfError):
        return None


def write_mark(dataset_id: DatasetId, sequence_number: int, block_hash: Multihash) -> None:
    """Remember that a block was signed; the file is replaced whole."""
    path = _path_of(dataset_id)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        draft.write_text(f"{sequence_number} {block_hash}\n", "ascii")
        draft.replace(path)


def _path_of(dataset_id: DatasetId) -> Path | None:
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "":
        return None
    if named is not None:
        return Path(named) / dataset_id.public_key.hex()
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base / "odf-node" / "signed" / dataset_id.public_key.hex()
