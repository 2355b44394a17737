"""From a file that somebody sent to an engine that can be run: what it is, how it starts, its root folder on disk.

Source: clauses ADDED-11 to ADDED-17 in ``spec/plug-ins/foreign.md``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_foreign.added.description import CONTRACT_PORT, MOUNT_POINTS, OWN_PLACES, PROGRAM, AddedForm, EngineStart
from odf_foreign.archive.image import Image
from odf_foreign.archive.root_folder import MAX_FILE_BYTES, Places, opened_archive
from odf_foreign.archive.tar_entries import magic_of
from odf_protocol.errors import MalformedError

_PROGRAMS: Final = (b"\x7fELF", b"#!")
_ROOT_COMMAND: Final = "/engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenEngine:
    """What a file turned out to be; ``notes`` say what was changed of it."""

    form: AddedForm
    start: EngineStart
    version: str = ""
    notes: tuple[str, ...] = ()


def take_engine(file: Path, root: Path, *, command: tuple[str, ...] | None, port: int | None) -> TakenEngine:
    """Find out what a file is, and unpack it if it is an archive.

    Args:
        file: Untrusted; nobody else writes to it.
        root: Where its root folder shall be; does not exist yet. A program has none.
        command: How it is started; None: as it says itself.
        port: Where it answers; None: where engines usually do.

    Raises:
        MalformedError, UnsupportedError: It is no engine, or an archive that nobody should unpack.
        OSError: It cannot be written.
    """
    if (size_bytes := file.stat().st_size) > MAX_FILE_BYTES:
        raise MalformedError("engine", expected=f"a file of at most {MAX_FILE_BYTES} bytes", found=size_bytes)
    if magic_of(file).startswith(_PROGRAMS):
        start = EngineStart(command=command or (PROGRAM,), port=port or CONTRACT_PORT)
        start.check()
        return TakenEngine(form=AddedForm.PROGRAM, start=start)
    with opened_archive(file, root.with_name(f"{root.name}.tar")) as archive:
        start = _start_of(archive.image, command, port)
        start.check()
        notes = archive.unpack(root, Places(MOUNT_POINTS, OWN_PLACES))
    version = archive.image.version if archive.image else ""
    return TakenEngine(form=AddedForm.ROOT, start=start, version=version, notes=notes)


def _start_of(image: Image | None, command: tuple[str, ...] | None, port: int | None) -> EngineStart:
    if image is None:
        return EngineStart(command=command or (_ROOT_COMMAND,), port=port or CONTRACT_PORT)
    return EngineStart(
        command=command or image.command,
        environment=image.environment,
        folder=image.folder,
        port=port or CONTRACT_PORT,
    )
