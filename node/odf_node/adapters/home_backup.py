"""A copy of a home that is in use, and a home made of such a copy (HOME-40 to HOME-43, HOME-56).

A backup is a folder, or one tar file with the same in it: ``odf-node.sqlite``, ``objects/...`` as in a home, and
``backup.json``, which is written last and says how many there are. Keys are never among them; they have a file of their
own where somebody asks for it.
"""

import fcntl
import glob
import hashlib
import io
import os
import secrets
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from odf_node.adapters.backup_manifest import MANIFEST, find_signer, make_manifest, read_manifest
from odf_node.adapters.key_files import KeyFiles
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.adapters.plain_tar import is_plain, iter_members, opened_tar
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder, fsync_folder
from odf_node.records.errors import HomeCorruptError, HomeVersionError, ObjectCorruptError, mapped_os_errors
from odf_node.store import MetadataStore
from odf_node.store.own_tables import migrate_copy, require_own_tables
from odf_node.store.restored_rows import believe_nothing, check_rows
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import SHA3_256, Multihash

_DATABASE: Final = "odf-node.sqlite"
_UNDER_WAY: Final = f".{MANIFEST}"
"""Is in a folder from before the first file of a backup is until ``backup.json`` is: whoever finds it goes on."""
_CHUNK_BYTES: Final = 1024 * 1024

OnBytes = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What is in a backup, and how many of its objects were copied this time."""

    datasets: int
    objects: int
    copied: int
    copied_bytes: int
    signer: DidKey | None = None
    """The node whose signature of the database holds; of a restore, only one that was named as its maker."""


def back_up(home: HomeFolder, target: Path, on_bytes: OnBytes) -> BackupReport:
    """Copy a home that others may be using.

    The lease keeps sweeps away, so every object that the copied database names is still there when its turn comes. What
    is committed after the database was copied is in the next backup.

    Args:
        home: What to copy.
        target: A folder, new or one of an earlier backup, which is brought up to date; or a file ending in ``.tar``.
        on_bytes: Told how much was copied.

    Raises:
        UsageError: The target is used for something else, or the home holds nothing.
        ObjectCorruptError, ObjectNotFoundError: An object is damaged or missing; 'odf-node repair' first.
        HomeFullError, HomeReadOnlyError: There is no room.
    """
    if not home.exists():
        raise UsageError(f"{home.path}: there is no node to back up")
    if home.contains(target):
        raise UsageError(f"{target} is in the node's own folder, and would be lost with it; name another place")
    is_file = target.suffix == ".tar"
    is_ours = any((target / name).is_file() for name in (MANIFEST, _UNDER_WAY))
    if not is_file and target.exists() and not is_ours and any(target.iterdir()):
        raise UsageError(f"{target}: expected a new folder or an earlier backup, found something else")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    objects = ObjectFolder(home)
    with mapped_os_errors(target), objects.writing():
        if is_file:
            _remove_left_drafts(target)
        folder = draft if is_file else target
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker = _hold(folder)
        try:
            database = folder / f".{_DATABASE}.{secrets.token_hex(4)}"
            _copy_database(home, database)
            wanted, more, datasets = _read_named(database, home.database)
            # Files that need not be here and are may be had nowhere else by the time of the restore (PART-4).
            wanted |= {item for item in more if objects.has(item)}
            key = KeyFiles(home).find_node_key()
            manifest = make_manifest(database, key, datasets=datasets, objects=len(wanted))
            if is_file:
                part = draft / "archive"
                report = _fill_archive(part, objects, database, wanted, manifest, on_bytes)
                part.replace(target)
            else:
                report = _fill_folder(folder, objects, database, wanted, manifest, on_bytes)
            report = replace(report, datasets=datasets, signer=None if key is None else DidKey(key.public_key()))
            fsync_folder(target.parent)
        finally:
            if is_file:
                shutil.rmtree(draft, ignore_errors=True)
            for left in folder.glob(f".{_DATABASE}.*"):
                left.unlink(missing_ok=True)
            for left in folder.glob(".reading-*"):
                shutil.rmtree(left, ignore_errors=True)
            os.close(marker)
    return report


def restore(
    home: HomeFolder, source: Path, on_bytes: OnBytes, *, makers: frozenset[DidKey] = frozenset()
) -> BackupReport:
    """Make a home of a backup; every object is compared with its name on the way, and every row with what it says.

    Args:
        home: Where to; holds nothing.
        source: What ``back_up`` wrote.
        on_bytes: Told how much was copied.
        makers: The node that made the backup, as the caller knows it from elsewhere. What only that node's word stands
            behind is left out of a database that none of them signed (HOME-56).

    Raises:
        UsageError: The home holds something already.
        MalformedError: The source is no backup, not a whole one, or has rows that no backup has.
        RejectedError: What stands in the place of a signature is none of this database.
        ObjectCorruptError: An object of the backup is damaged.
    """
    if home.exists():
        raise UsageError(f"{home.path}: there is a node already; restore into another --home, or move this one away")
    objects = ObjectFolder(home)
    with mapped_os_errors(home.path), objects.writing(), _whole_archive(source):
        draft = home.staging / f"database-{secrets.token_hex(8)}"
        copied = copied_bytes = 0
        found: dict[str, Any] | None = None
        for name, stream in _iter_members(source):
            if name == _DATABASE:
                if draft.exists():
                    raise MalformedError("backup", where=str(source), expected=f"one {_DATABASE}", found="a second one")
                with draft.open("xb") as file:
                    shutil.copyfileobj(stream, file, _CHUNK_BYTES)
                    os.fsync(file.fileno())
            elif name == MANIFEST:
                found = read_manifest(stream, source)
            elif name.startswith("objects/"):
                copied_bytes += _restore_object(objects, name, stream, on_bytes)
                copied += 1
        if found is None or not draft.is_file():
            raise MalformedError(
                "backup", where=str(source), expected=f"{_DATABASE} and {MANIFEST}", found="no whole one"
            )
        require_own_tables(draft, f"{source}: {_DATABASE}")
        signer = find_signer(found, draft, source)  # of the bytes as they were made
        migrate_copy(draft)
        check_rows(draft, f"{source}: {_DATABASE}")
        if signer not in makers:
            signer = None
            believe_nothing(draft)
        wanted, _, datasets = _read_named(draft, source)
        missing = [str(item) for item in wanted if not objects.has(item)]
        if missing:
            raise MalformedError("backup", where=str(source), expected="all objects", found=f"without {missing[0]}")
        with closing(sqlite3.connect(draft)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        draft.chmod(0o600)
        os.link(draft, home.database)
        draft.unlink()
        home.make_durable()
    return BackupReport(datasets, len(wanted), copied, copied_bytes, signer)


def _create_private(path: Path) -> int:
    """Open a new file that only this user can read, whatever the folder allows (HOME-42)."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _hold(folder: Path) -> int:
    """Say in a folder that a backup is under way there, and keep others out until what is returned is closed.

    Raises:
        UsageError: Another backup is under way there: two would remove what the other one needs.
    """
    path = folder / _UNDER_WAY
    marker = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = path.exists() and os.path.samestat(path.stat(), os.fstat(marker))
    except BlockingIOError:
        is_there = False
    if not is_there:
        os.close(marker)
        raise UsageError(f"{folder}: another backup is written there just now; wait for it, or name another folder")
    return marker


def _remove_left_drafts(target: Path) -> None:
    """Remove what backups to the same file left when they were killed; those that are written just now are held."""
    for draft in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}"):
        if (draft / _UNDER_WAY).is_file():
            with suppress(UsageError):
                marker = _hold(draft)
                shutil.rmtree(draft, ignore_errors=True)
                os.close(marker)


def _copy_database(home: HomeFolder, target: Path) -> None:
    # SQLite's own backup: a consistent state, whoever is writing.
    address = f"{home.database.absolute().as_uri()}?mode=ro"
    os.close(_create_private(target))
    with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        # A single file: what is read on a disk without write access needs no log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        (verdict,) = copy.execute("PRAGMA quick_check").fetchone()
    target.chmod(0o600)
    if verdict != "ok":
        raise HomeCorruptError(home.database, f"the database is damaged: {verdict}")


def _read_named(database: Path, origin: Path) -> tuple[set[Multihash], set[Multihash], int]:
    """Read from a database copied from ``origin`` which objects have to be with it, and which need not.

    The third is how many datasets it has.
    """
    folder = database.parent / f".reading-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        os.link(database, folder / _DATABASE)
        with closing(MetadataStore(HomeFolder(folder))) as store:
            expected = store.list_expected_objects()
            return set(expected), set(store.list_referenced_objects() - expected), len(store.list_datasets())
    except HomeVersionError as error:
        raise HomeVersionError(origin, str(error.supported), str(error.found), is_newer=error.is_newer) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill_folder(
    folder: Path, objects: ObjectFolder, database: Path, wanted: set[Multihash], manifest: bytes, on_bytes: OnBytes
) -> BackupReport:
    copied = copied_bytes = 0
    for object_hash in sorted(wanted, key=str):
        path = folder / _object_name(object_hash)
        size_bytes = objects.get_size(object_hash)
        if path.is_file() and path.stat().st_size == size_bytes:
            continue
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        with os.fdopen(_create_private(part), "wb") as file:
            _copy_object(objects, object_hash, file, on_bytes)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        copied, copied_bytes = copied + 1, copied_bytes + size_bytes
    with database.open("rb") as file:
        os.fsync(file.fileno())
    database.replace(folder / _DATABASE)
    fsync_folder(folder)
    # Only now: what the backup before needed and this one does not. So there is a whole backup at any moment.
    for path in (folder / "objects").rglob("*"):
        if path.is_file() and path.name not in {str(item) for item in wanted}:
            path.unlink()
    part = folder / f".{MANIFEST}.part"
    with os.fdopen(_create_private(part), "wb") as file:
        file.write(manifest)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MANIFEST)
    fsync_folder(folder)
    (folder / _UNDER_WAY).unlink()
    return BackupReport(0, len(wanted), copied, copied_bytes)


def _fill_archive(
    part: Path, objects: ObjectFolder, database: Path, wanted: set[Multihash], manifest: bytes, on_bytes: OnBytes
) -> BackupReport:
    copied_bytes = 0
    with part.open("xb") as file:
        part.chmod(0o600)
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.add(database, _DATABASE, recursive=False)
            for object_hash in sorted(wanted, key=str):
                member = tarfile.TarInfo(_object_name(object_hash))
                member.size, member.mode = objects.get_size(object_hash), 0o600
                objects.check(object_hash)
                with objects.open(object_hash) as source:
                    archive.addfile(member, source)
                copied_bytes += member.size
                on_bytes(member.size)
            member = tarfile.TarInfo(MANIFEST)
            member.size = len(manifest)
            archive.addfile(member, io.BytesIO(manifest))
        file.flush()
        os.fsync(file.fileno())
    return BackupReport(0, len(wanted), len(wanted), copied_bytes)


def _copy_object(objects: ObjectFolder, object_hash: Multihash, target: IO[bytes], on_bytes: OnBytes) -> None:
    hasher = hashlib.sha3_256()
    with objects.open(object_hash) as source:
        while chunk := source.read(_CHUNK_BYTES):
            hasher.update(chunk)
            target.write(chunk)
            on_bytes(len(chunk))
    found = Multihash(SHA3_256, hasher.digest())
    if found != object_hash:
        raise ObjectCorruptError(objects.get_path(object_hash), object_hash, found)


def _restore_object(objects: ObjectFolder, name: str, stream: IO[bytes], on_bytes: OnBytes) -> int:
    object_hash = Multihash.parse(name.rpartition("/")[2])
    if name != _object_name(object_hash):
        raise MalformedError("backup", where=name, expected=_object_name(object_hash), found=name)
    with objects.stage() as staged:
        while chunk := stream.read(_CHUNK_BYTES):
            staged.write(chunk)
            on_bytes(len(chunk))
        size_bytes = staged.size_bytes
        objects.put(staged, object_hash)
    return size_bytes


def _iter_members(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name of each file of a backup and its bytes, to be read before the next one."""
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                with path.open("rb") as file:
                    yield path.relative_to(source).as_posix(), file
        return
    with opened_tar(source) as archive:
        for member in iter_members(archive):
            stream = archive.extractfile(member) if is_plain(member) else None
            if stream is None:
                raise MalformedError("backup", where=member.name, expected="a plain file", found="something else")
            yield member.name, stream


@contextmanager
def _whole_archive(source: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, ValueError, RecursionError) as error:  # one header after another for one member
        raise MalformedError("backup", where=str(source), expected="a whole tar file", found=str(error)) from error


def _object_name(object_hash: Multihash) -> str:
    return f"objects/{object_hash.digest[:1].hex()}/{object_hash}"
