"""``backup.json``: what a backup has in it, and the word of the node that made it (HOME-41, HOME-56)."""

import base64
import binascii
import hashlib
import json
from pathlib import Path
from typing import IO, Any, Final

from odf_node.ports.keys import PrivateKey
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_document

MANIFEST: Final = "backup.json"
FORMAT: Final = 2
"""1 had no signature; such a backup is restored as one that nobody signed."""
_MAX_BYTES: Final = 64 * 1024  # guess: a manifest takes half a kilobyte


def make_manifest(database: Path, key: PrivateKey | None, *, datasets: int, objects: int) -> bytes:
    """Write the manifest of a backup; a node that has no key yet signs nothing.

    Args:
        database: The copy that is in the backup, as it stays.
        key: The node's.
        datasets: How many the database has.
        objects: How many are beside it.
    """
    contents = {"format": FORMAT, "datasets": datasets, "objects": objects}
    if key is not None:
        payload = json.dumps({**contents, "database": str(_hash_of(database))}).encode()
        signed = sign_document(key.seed, Purpose.BACKUP, payload).to_bytes()
        contents["signed"] = base64.b64encode(signed).decode()  # type: ignore[assignment]
    return json.dumps(contents).encode() + b"\n"


def read_manifest(stream: IO[bytes], source: Path) -> dict[str, Any]:
    """Read the manifest of a backup.

    Raises:
        MalformedError: It is none.
    """
    try:
        found = json.loads(stream.read(_MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise MalformedError("backup", where=str(source), expected="JSON", found=str(error)) from error
    if not isinstance(found, dict) or found.get("format") not in (1, FORMAT):
        raise MalformedError("backup", where=str(source), expected=f"format 1 or {FORMAT}", found=repr(found)[:100])
    return found


def find_signer(manifest: dict[str, Any], database: Path, source: Path) -> DidKey | None:
    """Return whose signature of a backup's database the manifest has; None where it has none.

    Raises:
        MalformedError, RejectedError: What stands in its place is no signature, or one of another database.
    """
    if "signed" not in manifest:
        return None
    try:
        raw = base64.b64decode(manifest["signed"], validate=True)
        document = SignedDocument.decode(raw, Purpose.BACKUP, max_payload_bytes=_MAX_BYTES)
        signed = json.loads(document.payload)["database"]
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MalformedError("backup", where=str(source), expected="a signed manifest", found=str(error)) from error
    if signed != (found := str(_hash_of(database))):
        raise RejectedError("HOME-56 backup-is-what-was-signed", expected=signed, found=found)
    return document.signer


def _hash_of(path: Path) -> Multihash:
    with path.open("rb") as file:
        return Multihash(SHA3_256, hashlib.file_digest(file, "sha3_256").digest())
