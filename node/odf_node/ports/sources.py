"""Sources that a root dataset is fed from: fetching bytes, and unpacking them into one local file."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn, Protocol

from odf_protocol.errors import NotFoundError, RejectedError, UnavailableError
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_protocol.events import FetchStep, PrepStep, SetPollingSource, SourceState
    from odf_protocol.manifest.errors import At


DATASET_SCHEME: Final = "dataset"
"""Of URLs of datasets of this node, which are no business of readers of what is outside (ING-43)."""


class SourceNotFoundError(NotFoundError):
    """Nothing is at the place that the source names."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


class SourceUnavailableError(UnavailableError):
    """The source did not answer, answered with an error, or broke off; ``status`` is HTTP's, where there was one.

    ``retry_after_s`` is for how long it asked to be left alone; 0: it did not.
    """

    def __init__(self, source: str, reason: str, *, status: int | None = None, retry_after_s: int = 0) -> None:
        asked = f", and asks to be left alone for {retry_after_s} s" if retry_after_s else ""
        super().__init__(f"{source}: {reason}{asked}")
        self.source = source
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after_s


class SourceTooLargeError(RejectedError):
    """The source is, or unpacks to, more bytes than the operator's limit; ``limit`` names the limit."""

    def __init__(self, source: str, limit: str, expected: int) -> None:
        super().__init__(limit, expected=f"at most {expected}")
        self.args = (f"{source}: more than the {expected} that the limit {limit} allows",)
        self.source = source
        self.limit = limit


class SourceRejectedError(RejectedError):
    """The source asks for what this node does not do for anybody: a bad redirect, a command it may not run."""

    def __init__(self, source: str, rule: str, reason: str) -> None:
        super().__init__(rule, found=source)
        self.args = (f"{source}: {reason}",)
        self.source = source
        self.reason = reason


class Commands(StrEnum):
    """Who may run the commands of manifests, by the operator's word (ING-17)."""

    NONE = "nobody"
    SANDBOXED = "sandboxed"
    UNCONFINED = "unconfined"


COMMANDS_SETTING: Final = "ingest.commands"
"""The setting that says it; in the environment ``ODF_NODE_INGEST_COMMANDS``."""


def reject_command(source: str, what: str) -> NoReturn:
    """Reject to run something of a manifest.

    Raises:
        SourceRejectedError: Always.
    """
    raise SourceRejectedError(
        source,
        "commands-need-permission",
        f"the manifest asks to run {what}, and commands are not allowed here; "
        f"the setting {COMMANDS_SETTING} = {Commands.SANDBOXED.value!r} allows them",
    )


@dataclass(frozen=True, slots=True)
class UpToDate:
    """The source has nothing newer than the state that was handed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What the source has.

    ``path`` lies in the given folder. ``name`` is the source in words for messages. ``source_state`` None: the source
    states nothing by which a next fetch could skip it. ``event_time`` None: the source states no time, so the time of
    the ingest stands in. ``has_more``: fetch again with the new state, there is another piece. ``waiting``: pieces
    behind this one, as far as they were seen, for the next fetch alone.
    """

    path: Path
    name: str
    source_state: "SourceState | None"
    event_time: Timestamp | None
    has_more: bool = False
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a prepare step made of a file.

    Attributes:
        path: The result.
        unread: Names of further files of an archive, of which the step names none (ING-49).
    """

    path: Path
    unread: tuple[str, ...] = ()


class SourceReader(Protocol):
    """Reads polling sources as they are declared, after templates were filled in."""

    async def fetch(
        self,
        step: "FetchStep",
        *,
        state: "SourceState | None",
        now: Timestamp,
        folder: Path,
        session: str = "odf",
        waiting: tuple[str, ...] = (),
    ) -> Fetched | UpToDate:
        """Bring what is newer than ``state`` (None: everything) as one file.

        Args:
            step: Where from.
            state: What an earlier fetch returned; kinds that are not known are as None.
            now: The system time of the ingest.
            folder: A private folder of this ingest, to write to; the caller removes it.
            session: Names the dataset to servers that keep something for it, in at most 23 letters and digits.
            waiting: What the fetch just before saw behind its piece, so that nothing has to be listed again.

        Raises:
            SourceNotFoundError: There is nothing (any more).
            SourceUnavailableError: Try again later.
            SourceTooLargeError: More bytes than allowed.
            SourceRejectedError: It redirects too often, or from an encrypted to an open connection.
            MalformedError: The step does not make sense (URL, pattern, time format).
            UnsupportedError: A kind of step or an option of it that this node does not have.
            HomeFullError: No room for the bytes.
        """
        ...

    def check(self, source: "SetPollingSource", at: "At") -> None:
        """Look for what can never be fetched or prepared here; ``at`` is where the source stands in its manifest.

        Raises:
            SnapshotError: There is something.
        """
        ...

    def take(self, source: Path | BinaryIO, *, name: str, folder: Path) -> Path:
        """Copy a file that is pushed, or what is left of a stream, into ``folder``; return where it is now.

        A relative path is one of this process.

        Raises:
            SourceNotFoundError: There is no such file.
            SourceUnavailableError: It cannot be read, or changed meanwhile.
            SourceTooLargeError: More bytes than allowed.
            HomeFullError: No room for the bytes.
        """
        ...

    async def prepare(self, step: "PrepStep", *, path: Path, name: str, folder: Path) -> Prepared:
        """Run a prepare step over a file, which stays as it is.

        Raises:
            MalformedError: An archive is damaged or has no such entry, or a command failed.
            SourceTooLargeError: It unpacks to more bytes, or many times more, than allowed.
            SourceRejectedError: A command is to be run, and the operator did not allow it.
            UnsupportedError: An archive with a password or of an unknown method.
            HomeFullError: No room for the bytes.
        """
        ...

    def decode(self, codec: str, *, path: Path, name: str) -> Path:
        """Write a text that is in the encoding ``codec`` (as Python calls it) in UTF-8, beside ``path``.

        Bytes that mean nothing in it become one that UTF-8 never has.

        Raises:
            SourceTooLargeError: More bytes than allowed.
            HomeFullError: No room for the bytes.
        """
        ...
