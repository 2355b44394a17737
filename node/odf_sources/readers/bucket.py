"""One object of a bucket: the one that is named, or the next of those that match a pattern.

Source: clause ING-45 in ``spec/plug-ins/sources.md``.
"""

import fnmatch
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final

from pyarrow import ArrowException, NativeFile
from pyarrow.fs import FileSelector, FileType, S3FileSystem

from odf_node.adapters.bucket_client import BucketAddress, BucketKeys, Trouble, connect_bucket, judge
from odf_node.adapters.next_match import advise_on_pattern, list_newer
from odf_node.source_readers import SourceError, fault
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp

MEMORY_BYTES: Final = 2 * 1024**3  # guess: the client takes 0.5 GiB of addresses, with many cores more

WILDCARDS: Final = "*?["
_CHUNK_BYTES: Final = 8 * 1024 * 1024  # guess: each is a request
_MAX_WAITING_BYTES: Final = 48 * 1024  # of an answer, which has at most 64 KiB: some hundred names
_MAX_KEY_BYTES: Final = 1024  # Source: "Object key naming guidelines" of Amazon S3
_MAX_ETAG_CHARACTERS: Final = 1024  # guess: Amazon's have 34 to 40
_KINDS: Final = {
    Trouble.NO_FILE: "not-found",
    Trouble.NO_BUCKET: "not-found",
    Trouble.FORBIDDEN: "not-allowed",
    Trouble.UNAVAILABLE: "unavailable",
}


def answer(request: dict[str, Any], content: BinaryIO) -> dict[str, Any]:
    """Write an object that is not known yet, and return what names this version of it; or what is wrong."""
    expected = ""
    try:
        return _read(request, content)
    except SourceError as error:
        kind, reason = error.kind, str(error)
    except MalformedError as error:
        kind, reason, expected = "malformed", str(error.found), str(error.expected)
    except MemoryError:
        kind, reason = "unavailable", "its answer does not end"
    except OSError as error:
        trouble, reason = judge(error)
        kind = _KINDS[trouble]
        if trouble is Trouble.NO_FILE:
            reason = f"no such object{'' if request['is_pattern'] else advise_on_pattern(request['address']['prefix'])}"
        if trouble is Trouble.FORBIDDEN:
            reason = f"{request['advice']} ({reason})"
    except (ArrowException, ValueError) as error:
        kind, reason = "unavailable", str(error) or type(error).__name__
    return fault(kind, reason, request["keys"] or (), expected)


def _read(request: dict[str, Any], content: BinaryIO) -> dict[str, Any]:
    address = BucketAddress(**request["address"])
    files = connect_bucket(
        address,
        # A server that a manifest names gets nothing that this machine's environment has for Amazon's.
        os.environ if address.endpoint is None else {},
        keys=request["keys"] and BucketKeys(*request["keys"]),
        connect_s=request["connect_s"],
        request_s=request["request_s"],
    )
    newer = [PurePosixPath(address.bucket, address.prefix)]
    if request["is_pattern"]:
        newer = [PurePosixPath(each) for each in request["waiting"]]
        # The last one that is known of may not be the last one any more.
        if len(newer) <= 1 or not files.get_file_info(str(newer[0])).is_file:
            found = list(_iter_matches(files, address.bucket, address.prefix.split("/")))
            if not found:
                raise SourceError("not-found", "no object matches")
            newer = list_newer(found, request["last_name"], address.prefix)
    if not newer:
        return {"is_new": False}
    path, *waiting = newer
    version = _read_object(files, str(path), request, content)
    if version is None:
        return {"is_new": False}
    reported = {"has_more": bool(waiting), "waiting": _as_many_as_fit(map(str, waiting))}
    return {"is_new": True, "name": path.name, "path": str(path), **reported, **version}


def _as_many_as_fit(paths: Iterable[str]) -> list[str]:
    fitting, size_bytes = [], 0
    for path in paths:
        size_bytes += len(json.dumps(path)) + 2
        if size_bytes > _MAX_WAITING_BYTES:
            break
        fitting.append(path)
    return fitting


def _read_object(files: S3FileSystem, path: str, request: dict[str, Any], content: BinaryIO) -> dict[str, Any] | None:
    """Write an object; give its ETag and the time of its last change, in milliseconds, None where they are known."""
    version = _find_version(files, path)
    if request["known"] is not None and request["known"] in (version["etag"], version["modified_ms"]):
        return None
    if version["size_bytes"] > request["size_bytes"]:
        raise SourceError("too-large", "")
    with files.open_input_file(path) as file:
        for position in range(0, version["size_bytes"], _CHUNK_BYTES):
            content.write(_read_chunk(file, position, min(_CHUNK_BYTES, version["size_bytes"] - position)))
    if _find_version(files, path) != version:
        raise SourceError("unavailable", "the object changed while it was read; try again when it is complete")
    return version


def _read_chunk(file: NativeFile, position: int, size_bytes: int) -> bytearray:
    """Read a range, of which the server has sent the last byte.

    Where it sends fewer bytes than it announced, the library says that all came, and the rest is what memory held
    before. So what the last byte was before is chosen, and where it still is that, it is chosen otherwise.
    """
    for before in (0, 1):
        chunk = bytearray(size_bytes)
        chunk[-1] = before
        file.seek(position)
        if file.readinto(chunk) == size_bytes and chunk[-1] != before:
            return chunk
    raise SourceError("unavailable", "fewer bytes came than were announced")


def _find_version(files: S3FileSystem, path: str) -> dict[str, Any]:
    with files.open_input_file(path) as file:
        reported, size_bytes = file.metadata(), file.size()
    etag = reported.get("ETag", b"").decode(errors="replace")
    is_plain = etag.isascii() and etag.isprintable() and 0 < len(etag) <= _MAX_ETAG_CHARACTERS
    modified_ms = None
    with suppress(MalformedError, KeyError):
        modified_ms = Timestamp.parse(reported["Last-Modified"].decode(errors="replace")).unix_ms
    return {"etag": etag if is_plain else None, "modified_ms": modified_ms, "size_bytes": size_bytes}


def _iter_matches(files: S3FileSystem, folder: str, parts: list[str]) -> Iterator[PurePosixPath]:
    """Yield the objects below a folder whose names match, part by part, as of files."""
    first, *rest = parts
    if not any(each in first for each in WILDCARDS):
        path = f"{folder}/{first}"
        if rest:
            yield from _iter_matches(files, path, rest)
        elif files.get_file_info(path).is_file:
            yield PurePosixPath(path)
        return
    wanted = FileType.Directory if rest else FileType.File
    for info in files.get_file_info(FileSelector(folder, allow_not_found=True)):
        name = info.path.removeprefix(f"{folder}/")
        is_hidden = name.startswith(".") and not first.startswith(".")
        if info.type is not wanted or is_hidden or not fnmatch.fnmatchcase(name, first):
            continue
        if "/" in name or name in {"", ".", ".."} or not name.isprintable() or len(name.encode()) > _MAX_KEY_BYTES:
            expected = "keys of plain names, without controls and dots for folders"
            raise MalformedError("bucket", expected=expected, found=ascii(info.path[:200]))
        if rest:
            yield from _iter_matches(files, info.path, rest)
        else:
            yield PurePosixPath(info.path)
