"""Engines that the operator of this node added from files, beside those that are installed with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from odf_engines.engine import Engine
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelvedEngine:
    """An added engine, and what is known of the file that it came from.

    ``digest`` is that of what was added; ``notes`` say what was changed of an archive that came in.
    """

    engine: Engine
    digest: str
    form: str
    file_bytes: int
    added_at: Timestamp
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the engine."""
        return self.engine.name

    @property
    def build(self) -> str:
        """It among others of its name."""
        return f"{self.name}@{self.digest}"

    def fits(self, digest: str) -> bool:
        """Say whether this is the engine that a digest, or its end, means."""
        return self.digest.endswith(digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedEngine:
    """An added engine of which nothing can be read; ``digest`` is empty where not even that is known."""

    name: str
    digest: str
    place: Path
    found: str

    @property
    def build(self) -> str:
        """It among others of its name."""
        return f"{self.name}@{self.digest}" if self.digest else self.name

    def fits(self, digest: str) -> bool:
        """See ``ShelvedEngine``."""
        return self.digest.endswith(digest)

    def describe(self) -> str:
        """Say what is wrong, and what to do."""
        return f"{self.found}; 'odf-node engine remove {self.build}' forgets it, then add it again"


AnyShelved = ShelvedEngine | DamagedEngine

_MIN_END = 8  # guess: as short as people copy it, and long enough to tell the engines of a machine apart


def split_build(build: str) -> tuple[str, str]:
    """Take ``NAME`` or ``NAME@DIGEST`` apart; without a digest the second part is empty.

    Raises:
        MalformedError: The digest is none, nor the end of one.
    """
    name, at, digest = build.partition("@")
    if at and (len(digest) < _MIN_END or not set(digest) <= set("0123456789abcdef")):
        expected = f"NAME@DIGEST, the digest whole or at least its last {_MIN_END} characters"
        raise MalformedError("engine", expected=expected, found=build)
    return name, digest


class EngineFiles(Protocol):
    """Added engines by name and digest; an engine is there whole, or not at all."""

    def find(self, name: str) -> Sequence[AnyShelved]:
        """Return the engines of a name, whatever case that is written in, the one that was added last first."""
        ...

    def list(self) -> Sequence[AnyShelved]:
        """Return all, by name; one that is damaged keeps none of the others back."""
        ...
