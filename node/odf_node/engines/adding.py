"""Adding engines of others to this node, and taking them away (ADDED-1 to ADDED-4)."""

from dataclasses import dataclass, field
from pathlib import Path

from odf_engines.contract import Limits
from odf_engines.engine import Engine
from odf_engines.errors import EngineFailureError
from odf_engines.registry import installed_engines
from odf_node.engine_workspace import EngineWorkspace
from odf_node.errors import UsageError
from odf_node.os_errors import mapped_os_errors
from odf_node.ports.engines import EngineShelf, ShelvedEngine, WantedStart
from odf_protocol.errors import NotFoundError, shown
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class AddedEngines:
    """The use case behind ``odf-node engine add``, ``remove`` and ``export``."""

    shelf: EngineShelf
    workspace: EngineWorkspace
    limits: Limits = field(default_factory=Limits)

    def add(self, name: str, file: Path, wanted: WantedStart, *, now: Timestamp) -> ShelvedEngine:
        """Take an engine from a file that nobody has checked, and see whether it starts.

        Args:
            name: As transforms will name it.
            file: See ``EngineShelf``.
            wanted: How it is started.
            now: For people.

        Raises:
            UsageError: The name is that of an engine here, or there is no such file.
            MalformedError, UnsupportedError: As ``EngineShelf.add``.
            EngineFailureError: It does not start, or does not answer at its port.
            SandboxUnavailableError: This machine cannot confine it.
        """
        if name.lower() in {each.lower() for each in installed_engines()}:
            raise UsageError(f"engine '{name}' is installed with this program; give the one in {file} another name")
        if self.shelf.find(name) is not None:
            raise UsageError(f"there is an engine '{name}' already; 'odf-node engine remove {name}' forgets it")
        if not file.is_file():
            raise UsageError(f"{file} is no file; name a program, or an archive of a root folder or an image")
        try:
            return self.shelf.add(name, file, wanted, now=now, examine=self._try_start)
        finally:
            self.workspace.close()

    def remove(self, name: str) -> None:
        """Forget an engine; datasets that need it wait until it is there again.

        Raises:
            NotFoundError: There is none, or it is one of this program's own.
        """
        self.shelf.remove(self._own_name(name))

    def export(self, name: str, target: Path) -> ShelvedEngine:
        """Write the file that an engine was added from, for somebody else's node.

        Raises:
            NotFoundError: There is none, or it is one of this program's own.
            UsageError: There is a file already.
        """
        found = self.shelf.find(self._own_name(name))
        if found is None:
            raise NotFoundError(f"there is no added engine '{name}' in this node; 'odf-node engine list' shows them")
        try:
            self.shelf.export(name, target)
        except FileExistsError as error:
            raise UsageError(f"{target} is there already; nothing was written") from error
        return found

    def _own_name(self, name: str) -> str:
        if name.lower() in {each.lower() for each in installed_engines()}:
            raise NotFoundError(f"engine '{name}' was not added; it is part of this program")
        return name

    def _try_start(self, engine: Engine) -> None:
        """Start an engine once, with the last thing that it said where it does not."""
        with mapped_os_errors(self.workspace.path), engine.open(self.workspace.path, self.limits) as session:
            try:
                session.start()
            except EngineFailureError as error:
                said = [line for line in error.log.splitlines() if line.strip()]
                last = f"; the last that it wrote: {shown(said[-1])}" if said else ""
                raise EngineFailureError(f"the engine was not added: {error.message}{last}", log=error.log) from error
