"""Adding engines of others to this node, and taking them away (ADDED-1 to ADDED-4)."""

from dataclasses import dataclass, field
from pathlib import Path

from odf_engines.contract import Limits
from odf_engines.engine import Engine
from odf_engines.errors import EngineFailureError
from odf_foreign.added.description import check_engine_name
from odf_foreign.engine_folder import EngineFolder, WantedStart
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.finding import is_installed
from odf_node.errors import UsageError
from odf_node.ports.engines import AnyShelved, DamagedEngine, ShelvedEngine, split_build
from odf_node.records.errors import HomeCorruptError, mapped_os_errors
from odf_protocol.errors import NotFoundError, RejectedError, shown
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class AddedEngines:
    """The use case behind ``odf-node engine add``, ``remove`` and ``export``."""

    engine_files: EngineFolder
    workspace: EngineWorkspace
    limits: Limits = field(default_factory=Limits)

    def add(self, name: str, file: Path, wanted: WantedStart, *, now: Timestamp) -> ShelvedEngine:
        """Take an engine from a file that nobody has checked, and see whether it starts.

        Args:
            name: As transforms will name it.
            file: See ``EngineFolder``.
            wanted: How it is started.
            now: For people.

        Raises:
            UsageError: It is here already, under this name, or there is no such file.
            MalformedError, UnsupportedError: As ``EngineFolder.add``.
            EngineFailureError: It does not start, or does not answer at its port.
            SandboxUnavailableError: This machine cannot confine it.
        """
        if not file.is_file():
            raise UsageError(f"{file} is no file; name a program, or an archive of a root folder or an image")
        try:
            return self.engine_files.add(name, file, wanted, now=now, examine=self._try_start)
        except RejectedError as error:
            raise UsageError(f"engine '{name}' with digest {error.found} is here already") from error
        finally:
            self.workspace.close()

    def remove(self, build: str) -> AnyShelved:
        """Forget an engine, and return what it was; datasets that need it wait until it is there again.

        Args:
            build: ``NAME``, or ``NAME@DIGEST`` where there are several of one name.

        Raises:
            NotFoundError: There is none, or it is one of this program's own.
            UsageError: There are several.
        """
        found = self._pick(build)
        self.engine_files.remove(found)
        return found

    def export(self, build: str, target: Path) -> ShelvedEngine:
        """Write the file that an engine was added from, for somebody else's node.

        Raises:
            NotFoundError: There is none, or it is one of this program's own.
            UsageError: There are several, or there is a file already.
            HomeCorruptError: It is damaged.
        """
        found = self._pick(build)
        if isinstance(found, DamagedEngine):
            raise HomeCorruptError(found.place, found.describe())
        try:
            self.engine_files.export(found, target)
        except FileExistsError as error:
            raise UsageError(f"{target} is there already; nothing was written") from error
        return found

    def _pick(self, build: str) -> AnyShelved:
        name, digest = split_build(build)
        check_engine_name(name)
        found = [each for each in self.engine_files.find(name) if each.fits(digest)]
        if len(found) == 1:
            return found[0]
        if found:
            several = " or ".join(each.build for each in found)
            raise UsageError(f"{len(found)} engines are '{build}' here; say which: {several}")
        if is_installed(name):
            raise NotFoundError(f"engine '{name}' was not added; it is part of this program")
        raise NotFoundError(
            f"there is no added engine {shown(build)!r} in this node; 'odf-node engine list' shows them"
        )

    def _try_start(self, engine: Engine) -> None:
        """Start an engine once, with the last thing that it said where it does not."""
        with mapped_os_errors(self.workspace.path), engine.open(self.workspace.path, self.limits) as session:
            try:
                session.start()
            except EngineFailureError as error:
                stated = [line for line in error.log.splitlines() if line.strip()]
                last = f"; the last that it wrote: {shown(stated[-1])}" if stated else ""
                raise EngineFailureError(f"the engine was not added: {error.message}{last}", log=error.log) from error
