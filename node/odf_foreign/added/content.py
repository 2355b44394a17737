r"""The contents of an added engine as one hash.

It covers what can change a result: how the engine is started, and every file, link and folder by its place, with what
is in it and whether it may be run. It does not cover owners, times, layers, or how an archive was packed, so that an
image has one digest whoever saved it. A program alone has one place, ``program``.

    digest = sha3-256 of the lines, each closed by "\n": "odf-engine 1", the start as JSON, then by place
             "file <sha3-256 hex> x|- <place as JSON>", "link <target as JSON> <place>", "folder <place>"

Source: clause ADDED-5 in ``spec/plug-ins/foreign.md``.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from odf_engines.errors import EngineFailureError
from odf_engines.host.digest import FileFacts, hash_file
from odf_protocol.multihash import SHA3_256, Multihash

PROGRAM_PLACE = "program"

_ANY_RUN = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def digest_of_contents(files: Path, start: object, cache: Path | None) -> Multihash:
    """Return the digest of an engine, or of another archive that was unpacked.

    Args:
        files: The program, or the root folder.
        start: How it is started: what msgspec can encode.
        cache: Folder for what is known of single files, None for none; see ``FileFacts``.

    Raises:
        EngineFailureError: There is what no engine is made of, or it cannot be read.
    """
    known = FileFacts(cache, "added-engine-files", hash_file)
    digest = hashlib.sha3_256(b"odf-engine 1\n")
    digest.update(msgspec.json.encode(start, order="deterministic") + b"\n")
    try:
        if files.is_dir():
            lines = sorted(_iter_lines(files, known), key=lambda each: each[0])
        else:
            lines = [(PROGRAM_PLACE, f"file {known.get(files)} x {json.dumps(PROGRAM_PLACE)}")]
    except OSError as error:
        raise EngineFailureError(f"{error.filename or files}: {error.strerror}") from error
    for _, line in lines:
        digest.update(line.encode() + b"\n")
    known.save()
    return Multihash(SHA3_256, digest.digest())


def _iter_lines(root: Path, known: "FileFacts[str]") -> Iterator[tuple[str, str]]:
    waiting = [(root, "")]
    while waiting:
        folder, above = waiting.pop()
        for entry in os.scandir(folder):
            place = f"{above}/{entry.name}"
            name, mode = json.dumps(place), entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                waiting.append((Path(entry.path), place))
                yield place, f"folder {name}"
            elif stat.S_ISLNK(mode):
                target = Path(entry.path).readlink()
                yield place, f"link {json.dumps(str(target))} {name}"
            elif stat.S_ISREG(mode):
                yield place, f"file {known.get(Path(entry.path))} {'x' if mode & _ANY_RUN else '-'} {name}"
            else:
                raise EngineFailureError(f"{entry.path} is no file, link or folder")
