"""Added engines in the home: a folder for each, under its name and digest.

::

    engines/<name>@<digest>/engine.json   what is known of it
    engines/<name>@<digest>/file          as it was given; a program is run from here
    engines/<name>@<digest>/rootfs/       what the sandbox shows of an archive
    engines/engines.lock                  held by whoever adds or removes

Earlier versions of this program had one engine of a name, in ``engines/<name>/``.

An engine is made under a name that begins with a dot and renamed when it is whole; what a killed command left under
such a name is removed by the next one that adds.

Source: clauses ADDED-1 to ADDED-4 in ``spec/plug-ins/foreign.md``, HOME-50.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from odf_engines.engine import Engine
from odf_engines.sandbox.disk import remove_tree
from odf_foreign.added.content import digest_of_contents
from odf_foreign.added.description import AddedForm, EngineDescription, check_engine_name
from odf_foreign.added.engine import AddedEngine
from odf_foreign.added_files import copy_bounded, held_alone, make_durable
from odf_foreign.archive import MAX_FILE_BYTES, take_engine
from odf_node.home_folder import HomeFolder, fsync_folder
from odf_node.ports.engines import AnyShelved, DamagedEngine, EngineFiles, ShelvedEngine
from odf_node.records.errors import mapped_os_errors
from odf_protocol.errors import MalformedError, NotFoundError, RejectedError
from odf_protocol.timestamp import Timestamp

_DESCRIPTION: Final = "engine.json"
_FILE: Final = "file"
_ROOT: Final = "rootfs"
_LOCK: Final = "engines.lock"  # no engine can have such a name
_MAX_DESCRIPTION_BYTES: Final = 1024 * 1024  # guess: a class path of a thousand archives has 100 KB
_COPY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedStart:
    """How an engine shall be started, where its file does not say it or says it otherwise; None: as the file says.

    Attributes:
        command: Program and arguments, as the engine's own root folder has them.
        port: Where it answers.
    """

    command: tuple[str, ...] | None = None
    port: int | None = None


class EngineFolder(EngineFiles):
    """Added engines by name and digest; an engine is there whole, or not at all."""

    def __init__(self, home: HomeFolder) -> None:
        self._home = home
        # By what is known of each, so that its files are not looked through again for every step.
        self._known: dict[EngineDescription, AddedEngine] = {}

    @property
    def _folder(self) -> Path:
        return self._home.added_engines

    def find(self, name: str) -> Sequence[AnyShelved]:
        """See ``EngineFiles``."""
        try:
            wanted = check_engine_name(name)
        except MalformedError:
            return ()  # nothing was added under such a name
        found = [each for each in self.list() if each.name == wanted]
        return sorted(found, key=lambda each: isinstance(each, ShelvedEngine) and each.added_at.unix_ms, reverse=True)

    def list(self) -> Sequence[AnyShelved]:
        """See ``EngineFiles``."""
        if not self._folder.is_dir():
            return ()
        places = [path for path in self._folder.iterdir() if not path.name.startswith(".") and path.is_dir()]
        found = [self._read(place) for place in sorted(places)]
        return tuple(each for each in found if not isinstance(each, DamagedEngine) or each.place.is_dir())  # still

    def add(
        self, name: str, file: Path, wanted: WantedStart, *, now: Timestamp, examine: Callable[[Engine], None]
    ) -> ShelvedEngine:
        """Take an engine from an untrusted file.

        Args:
            name: What transforms call it.
            file: A program, the root folder of a container as a tar, or an image of one.
            wanted: How it shall be started.
            now: For people.
            examine: Looks at the engine before it is kept; what it raises keeps it away.

        Raises:
            MalformedError, UnsupportedError: The file is none of these, or would leave its folder, or is too large.
            RejectedError: It is there already, under this name.
            HomeFullError, HomeReadOnlyError: It cannot be written.
        """
        name = check_engine_name(name)
        with mapped_os_errors(self._folder):
            self._home.create()
            self._folder.mkdir(mode=0o700, exist_ok=True)
        with held_alone(self._folder, _LOCK), mapped_os_errors(self._folder):
            making = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self._folder))
            try:
                made, notes = self._make(making, name, file, wanted, now)
                if any(each.digest == made.digest for each in self.find(name)):
                    raise RejectedError("ADDED-2 engine-is-new", expected="another engine", found=made.digest)
                examine(AddedEngine(made, _files_of(making, made), self._cache))
                make_durable(making, (_FILE, _DESCRIPTION))
                place = making.rename(self._folder / f"{name}@{made.digest}")
            finally:
                remove_tree(making)
            fsync_folder(self._folder)
        return self._shelved(made, place, notes)

    def remove(self, engine: AnyShelved) -> None:
        """Forget an engine.

        Raises:
            NotFoundError: It is not there any more.
        """
        place = self._place_of(engine)
        with held_alone(self._folder, _LOCK), mapped_os_errors(self._folder):
            if not place.is_dir():
                raise NotFoundError(f"there is no added engine {engine.build} any more")
            # Gone at once, also for those who look while its files are removed.
            remove_tree(place.rename(self._folder / f".{engine.name}-{os.getpid()}"))

    def export(self, engine: ShelvedEngine, target: Path) -> None:
        """Write the file that an engine was added from.

        Raises:
            FileExistsError, OSError: The file is there already, or cannot be written.
        """
        source = self._place_of(engine) / _FILE
        with source.open("rb") as given, target.open("xb") as written:
            shutil.copyfileobj(given, written, _COPY_BYTES)
        if engine.form == AddedForm.PROGRAM:
            target.chmod(target.stat().st_mode | stat.S_IXUSR)

    @property
    def _cache(self) -> Path:
        return self._home.cache

    def _make(
        self, making: Path, name: str, file: Path, wanted: WantedStart, now: Timestamp
    ) -> tuple[EngineDescription, tuple[str, ...]]:
        copy_bounded(file, making / _FILE, MAX_FILE_BYTES, "engine")
        taken = take_engine(making / _FILE, making / _ROOT, command=wanted.command, port=wanted.port)
        if taken.form is AddedForm.PROGRAM:
            (making / _FILE).chmod(0o700)
        files = making / (_FILE if taken.form is AddedForm.PROGRAM else _ROOT)
        description = EngineDescription(
            name=name,
            version=taken.version,
            digest=str(digest_of_contents(files, taken.start, self._cache)),
            form=taken.form,
            start=taken.start,
            file_bytes=(making / _FILE).stat().st_size,
            added_at=str(now),
        )
        (making / _DESCRIPTION).write_bytes(msgspec.json.format(msgspec.json.encode(description)))
        return description, taken.notes

    def _place_of(self, engine: AnyShelved) -> Path:
        if isinstance(engine, DamagedEngine):
            return engine.place
        place = self._folder / engine.build
        return place if place.is_dir() else self._folder / engine.name  # as earlier versions called it

    def _read(self, folder: Path) -> AnyShelved:
        name, _, digest = folder.name.partition("@")
        path = folder / _DESCRIPTION
        try:
            with path.open("rb") as file:
                raw = file.read(_MAX_DESCRIPTION_BYTES)
            description = msgspec.json.decode(raw, type=EngineDescription)
            _check_place(description, folder)
            return self._shelved(description, folder, ())
        except (OSError, msgspec.MsgspecError, MalformedError) as error:
            found = f"{path.name} is not what is known of an added engine ({error})"
            return DamagedEngine(name=name, digest=digest, place=folder, found=found)

    def _shelved(self, description: EngineDescription, folder: Path, notes: tuple[str, ...]) -> ShelvedEngine:
        engine = self._known.get(description)
        if engine is None:
            engine = self._known[description] = AddedEngine(description, _files_of(folder, description), self._cache)
        return ShelvedEngine(
            engine=engine,
            digest=description.digest,
            form=description.form,
            file_bytes=description.file_bytes,
            added_at=Timestamp.parse(description.added_at),
            notes=notes,
        )


def _check_place(description: EngineDescription, folder: Path) -> None:
    build = f"{description.name}@{description.digest}"
    if folder.name not in {build, description.name}:
        raise MalformedError("engine", expected=folder.name, found=build)


def _files_of(folder: Path, description: EngineDescription) -> Path:
    return folder / (_FILE if description.form is AddedForm.PROGRAM else _ROOT)
