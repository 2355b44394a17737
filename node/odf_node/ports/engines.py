"""Engines that the operator of this node added from files, beside those that are installed with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from odf_engines.engine import Engine
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedStart:
    """How an engine shall be started, where its file does not say it or says it otherwise; None: as the file says.

    Attributes:
        command: Program and arguments, as the engine's own root folder has them.
        port: Where it answers.
    """

    command: tuple[str, ...] | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelvedEngine:
    """An added engine, and what is known of the file that it came from.

    ``notes`` say what was changed of an archive that came in, for whoever added it.
    """

    engine: Engine
    form: str
    file_bytes: int
    added_at: Timestamp
    notes: tuple[str, ...] = ()


class EngineShelf(Protocol):
    """Added engines by name; an engine is there whole, or not at all."""

    def find(self, name: str) -> ShelvedEngine | None:
        """Return an engine, whatever case its name is written in, or None.

        Raises:
            HomeCorruptError: Something stands in its place.
        """
        ...

    def list(self) -> Sequence[ShelvedEngine]:
        """Return all, by name.

        Raises:
            HomeCorruptError: Something else stands among them.
        """
        ...

    def add(
        self, name: str, file: Path, wanted: WantedStart, *, now: Timestamp, examine: Callable[[Engine], None]
    ) -> ShelvedEngine:
        """Take an engine from a file that nobody has checked.

        Args:
            name: A free one.
            file: A program, the root folder of a container as a tar, or an image of one.
            wanted: How it shall be started.
            now: For people.
            examine: Looks at the engine before it is on the shelf; what it raises keeps it away.

        Raises:
            MalformedError, UnsupportedError: The file is none of these, or would leave its folder, or is too large.
            RejectedError: The name is taken.
            HomeFullError, HomeReadOnlyError: It cannot be written.
        """
        ...

    def remove(self, name: str) -> None:
        """Forget an engine.

        Raises:
            NotFoundError: There is none.
        """
        ...

    def export(self, name: str, target: Path) -> None:
        """Write the file that an engine was added from.

        Raises:
            NotFoundError: There is none.
            FileExistsError, OSError: The file is there already, or cannot be written.
        """
        ...
