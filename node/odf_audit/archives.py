"""The audit log bounded: old reads are moved into files, in which the chain goes on; the oldest files are removed.

A file has all rows from where the one before ended, a line of JSON each. It is durable before reads are removed from
the database. Writes, the runs that made them and the lines of the core stay in the database as well.

Source: clauses AUDIT-9 and AUDIT-10 in ``spec/plug-ins/audit.md``.
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

from odf_node.accesses import AccessPlaces
from odf_node.home_folder import fsync_folder
from odf_node.records.audit import AuditArchive, AuditRow, AuditSeal
from odf_node.store import MetadataStore
from odf_node.store.access import read_entry
from odf_protocol.errors import MalformedError, OdfError

MAX_READS: Final = 200_000
"""Records of reads that the database holds; at that many the older half is moved.  # guess: 100 MB"""
MAX_ARCHIVES: Final = 100
"""Files that are kept, of some megabytes each.  # guess: ten million reads"""

_CHUNK_ROWS: Final = 1_000
_MAX_LINE_BYTES: Final = 1 << 20  # guess: a write that follows from a thousand versions has a third of it
_MAX_FILE_BYTES: Final = 4 << 30  # guess: MAX_READS rows at their longest
_NAME: Final = re.compile(r"(\d{12})-(\d{12})\.ndjson\.gz")
_LINE_COLUMNS: Final = 6


def archive_old_reads(places: AccessPlaces, most_reads: int = MAX_READS) -> AuditArchive | None:
    """Move the older half of the reads into a file where there are too many; None: nothing was moved."""
    store = places.store
    count = store.count_reads()
    if count <= most_reads:
        return None
    archives = store.list_archives()
    first = 1 + (archives[-1].last if archives else 0)
    last = store.find_archive_end(count - most_reads // 2)
    if last is None or last < first:
        return None
    target = path_of(places.folder.audit, first, last)
    newest = _write(store, target, first, last)
    if newest is None or newest.seal is None or newest.seal.signature is None:
        target.unlink(missing_ok=True)
        return None
    archive = AuditArchive(first=first, last=last, chain=newest.seal.chain, signature=newest.seal.signature)
    if not store.put_archive(archive):
        return None  # another process made the same file
    for path in list_files(places.folder.audit)[:-MAX_ARCHIVES]:
        with suppress(OSError):
            path.unlink()
    return archive


def path_of(folder: Path, first: int, last: int) -> Path:
    """Return where the archive of some rows is."""
    return folder / f"{first:012}-{last:012}.ndjson.gz"


def list_files(folder: Path) -> list[Path]:
    """List the archives that are there, oldest first."""
    return sorted(path for path in folder.glob("*.ndjson.gz") if _NAME.fullmatch(path.name))


def iter_archive(path: Path) -> Iterator[AuditRow]:
    """Yield the rows of an archive.

    Raises:
        MalformedError: It is none, or was changed so that it cannot be read.
    """
    number = 0
    for number, line in enumerate(_iter_lines(path), 1):
        try:
            yield _decode(json.loads(line))
        except (ValueError, TypeError, RecursionError, OdfError) as error:
            raise MalformedError("archive of the audit log", where=f"{path}, line {number}") from error


def _write(store: MetadataStore, target: Path, first: int, last: int) -> AuditRow | None:
    """Write a file whole or not at all; gives its last row."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    row, after = None, first - 1
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                while rows := [each for each in store.list_audit_rows(after, _CHUNK_ROWS) if each.id <= last]:
                    packed.writelines(map(_encode, rows))
                    row, after = rows[-1], rows[-1].id
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        fsync_folder(target.parent)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return row if row is not None and row.id == last else None


def _encode(row: AuditRow) -> bytes:
    entry, seal = row.entry, row.seal
    line = [str(entry.at), entry.actor, entry.command, entry.subject, entry.outcome.value, entry.detail]
    sealed = None if seal is None else [None if each is None else each.hex() for each in astuple(seal)]
    return json.dumps([row.id, line, row.run, row.record, sealed], separators=(",", ":")).encode("ascii") + b"\n"


def _decode(values: Any) -> AuditRow:
    number, line, run, record, sealed = values
    if type(number) is not int or len(line) != _LINE_COLUMNS:
        raise ValueError("other members")
    if not all(isinstance(each, str) for each in line) or not all(
        isinstance(each, str | None) for each in (run, record)
    ):
        raise ValueError("no texts")
    seal = None
    if sealed is not None:
        before, chain, signature = sealed
        seal = AuditSeal(
            bytes.fromhex(before), bytes.fromhex(chain), None if signature is None else bytes.fromhex(signature)
        )
    return AuditRow(id=number, entry=read_entry(tuple(line)), run=run, record=record, seal=seal)


def _iter_lines(path: Path) -> Iterator[bytes]:
    total = 0
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(_MAX_LINE_BYTES):
                total += len(line)
                if not line.endswith(b"\n") or total > _MAX_FILE_BYTES:
                    raise MalformedError("archive of the audit log", where=str(path), expected="whole, bounded lines")
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedError("archive of the audit log", where=str(path), found=str(error)) from error
