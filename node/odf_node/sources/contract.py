"""The contract of a kind of source: one class, which says what a step of it may declare and how it is done.

The core's kinds and those of plug-ins are alike. ODF's schema names the steps (``Url``, ``FilesGlob``, ``Mqtt``,
``Container``, ``Pipe``...), so a kind that it does not know is a ``Url`` of another scheme.

Source: clauses SRC-1 to SRC-3 in ``spec/plug-ins/sources.md``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from odf_node.byte_rate import ByteRate
from odf_node.home_folder import HomeFolder
from odf_node.ports.sources import Commands, Fetched, UpToDate
from odf_node.sources.limits import SourceLimits
from odf_protocol.events import FetchStep, PrepStep, SourceState
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What a node lets sources do.

    Attributes:
        limits: On what is fetched.
        rate: How fast bytes may move.
        commands: Who may run the programs of manifests.
        home: Of the node, where kinds keep what outlasts a fetch; None: nothing does.
    """

    limits: SourceLimits = field(default_factory=SourceLimits)
    rate: ByteRate = field(default_factory=ByteRate, compare=False)
    commands: Commands = Commands.NONE
    home: HomeFolder | None = None


@dataclass(frozen=True, slots=True)
class FetchContext:
    """What every fetch is told beside its step.

    Attributes:
        state: How far the source was read; None: not at all.
        now: The system time of the ingest.
        folder: Of this ingest.
        settings: Of the node.
        session: Names the dataset to servers that keep something for it, in at most 23 letters and digits.
        waiting: What the fetch just before saw behind its piece.
    """

    state: SourceState | None
    now: Timestamp
    folder: Path
    settings: SourceSettings
    session: str = "odf"
    waiting: tuple[str, ...] = ()

    @property
    def limits(self) -> SourceLimits:
        """Limits on what is fetched."""
        return self.settings.limits

    @property
    def rate(self) -> ByteRate:
        """How fast bytes may move."""
        return self.settings.rate


class SourceStep(ABC):
    """A kind of steps in a polling source.

    Attributes:
        steps: The classes of steps that it is asked about.
    """

    steps: ClassVar[tuple[type[FetchStep | PrepStep], ...]]


class SourceKind(SourceStep):
    """A kind of source.

    Attributes:
        schemes: The schemes of URLs and patterns that it reads, in lower case; empty: all steps of its classes.
        form: How a URL of it is written, for messages.
    """

    schemes: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[str] = ""

    @abstractmethod
    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        """Reject a step that could never be fetched here; ``at`` is where it stands in its manifest.

        A template stands where a variable of the environment will be.

        Raises:
            SnapshotError: It could not.
        """

    @abstractmethod
    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        """Fetch what is newer than the state; see ``ports.sources.SourceReader.fetch``."""


class PrepareKind(SourceStep):
    """A kind of prepare step."""

    @abstractmethod
    def check(self, step: PrepStep, at: At, settings: SourceSettings) -> None:
        """Reject a step that could never be done here; ``at`` is where it stands in its manifest.

        Raises:
            SnapshotError: It could not.
        """

    @abstractmethod
    async def prepare(
        self, step: PrepStep, path: Path, target: Path, *, name: str, settings: SourceSettings
    ) -> tuple[str, ...]:
        """Write what becomes of a file to the new file ``target``; see ``ports.sources.SourceReader.prepare``.

        Returns:
            Further files of an archive, which the step does not name.
        """
