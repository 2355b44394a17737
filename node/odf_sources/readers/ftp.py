"""A file of an FTP server, and when it was changed.

Source: clause ING-32 in ``spec/plug-ins/sources.md``; RFC 959, RFC 2428 (EPSV), RFC 3659 (MDTM, SIZE).
"""

import ftplib
import re
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from odf_node.source_readers import SourceError, fault

MEMORY_BYTES: Final = 256 * 1024**2  # guess: several times what this program takes

_MODIFIED: Final = re.compile(r"213 ([0-9]{14})(?:\.([0-9]{1,9}))?")
_CHUNK_BYTES: Final = 64 * 1024
_NO_FILE: Final = "550"  # Source: RFC 959 section 4.2.2


def answer(request: dict[str, Any], content: BinaryIO) -> dict[str, Any]:
    """Write a file that is newer than is known, and return when it was changed, in milliseconds; or what is wrong."""
    try:
        return _read_file(request, content)
    except SourceError as error:
        kind, reason = error.kind, str(error)
    except ftplib.error_perm as error:
        kind, reason = "not-found" if str(error).startswith(_NO_FILE) else "unavailable", str(error)
    except MemoryError:
        kind, reason = "unavailable", "its answer does not end"
    except (ftplib.Error, OSError, EOFError, ValueError) as error:  # the last of texts that are no part of a command
        kind, reason = "unavailable", str(error) or type(error).__name__
    return fault(kind, reason, [request["password"]])


def _read_file(request: dict[str, Any], content: BinaryIO) -> dict[str, Any]:
    path, written_bytes = request["path"], 0

    def write(chunk: bytes) -> None:
        nonlocal written_bytes
        written_bytes += len(chunk)
        content.write(chunk)

    # Left without QUIT where something is wrong: its answer could be what is wrong.
    with closing(ftplib.FTP()) as server:  # noqa: S321 - as the manifest asks; ING-32 says that the line is open
        server.connect(request["host"], request["port"], timeout=request["wait_s"])
        server.login(request["user"], request["password"])
        server.voidcmd("TYPE I")  # sizes of texts that are translated are others
        modified_ms = _find_modified_ms(server, path)
        if modified_ms is not None and modified_ms == request["known_ms"]:
            return {"is_new": False, "modified_ms": modified_ms}
        size_bytes = _find_size(server, path)
        if size_bytes is not None and size_bytes > request["size_bytes"]:
            raise SourceError("too-large", "")
        server.retrbinary(f"RETR {path}", write, blocksize=_CHUNK_BYTES)
        if (modified_ms, size_bytes) != (_find_modified_ms(server, path), _find_size(server, path)):
            raise SourceError("unavailable", "the file changed while it was read; try again when it is complete")
        with suppress(ftplib.Error, OSError, EOFError):
            server.quit()
    if size_bytes is not None and written_bytes != size_bytes:
        raise SourceError("unavailable", f"{written_bytes} bytes came of {size_bytes}")
    return {"is_new": True, "modified_ms": modified_ms}


def _find_modified_ms(server: ftplib.FTP, path: str) -> int | None:
    """Ask when a file was changed; None: the server does not say, or nothing that is a time."""
    try:
        found = _MODIFIED.fullmatch(server.sendcmd(f"MDTM {path}"))
        if found is None:
            return None
        time = datetime.strptime(found[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except (ftplib.error_perm, ValueError):
        return None
    return round(time.timestamp()) * 1000 + int((found[2] or "0").ljust(3, "0")[:3])


def _find_size(server: ftplib.FTP, path: str) -> int | None:
    try:
        return server.size(path)
    except (ftplib.error_perm, ValueError):
        return None
