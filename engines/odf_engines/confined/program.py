"""A confined program, as who asks it sees it: one request after the other, whose answers are taken as hostile.

Source: clauses SANDBOX-10 and ENGINE-29 in ``spec/extensions``.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from odf_engines.confined.messages import PART_BYTES, pack_message, read_message
from odf_engines.confined.process import SandboxedProcess
from odf_engines.errors import EngineFailureError, LimitExceededError

_MAX_AT_ONCE: Final = 100  # guess: reports of progress that wait while the host is busy
_MAX_EACH_S: Final = 10.0  # guess: a clock that jumps
_MAX_PROGRESS: Final = 10**18
_STATED_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program answered; untrusted.

    Attributes:
        header: With ``result``.
        body: Bytes behind it, no more than were allowed.
    """

    header: dict[str, Any]
    body: bytes


@dataclass(eq=False)
class ReportedError(Exception):
    """What a program reported instead of a result.

    Attributes:
        fields: As it says, unchecked.
        is_last: Whether it ends now.
    """

    fields: Any
    is_last: bool


class ConfinedProgram:
    """Asks the program of a process.

    Any failure but a ``ReportedError`` ends the process: the rest of its answer would be taken for the next one.

    Args:
        process: Runs it.
    """

    def __init__(self, process: SandboxedProcess) -> None:
        self.process = process

    def wait_until_ready(self, wall_s: float) -> None:
        """Wait until it says that it is ready for requests.

        Raises:
            ReportedError: It says why it will not be.
            LimitExceededError, EngineFailureError: See ``SandboxedProcess``.
        """
        deadline_s = time.monotonic() + wall_s
        header, _ = self.receive(lambda _header: 0, lambda: deadline_s - time.monotonic())
        if "error" in header:
            raise ReportedError(header["error"], is_last=True)
        if header != {"ready": True}:
            raise self.nonsense("it did not report that it is ready")
        self.process.note_answered()

    def ask(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        *,
        wall_s: float,
        body: bytes = b"",
        files: Sequence[int] = (),
        max_bytes: int = 0,
        target: BinaryIO | None = None,
        max_target_bytes: int = 0,
        on_progress: Callable[[int], None] = lambda _count: None,
    ) -> ProgramOutput:
        """Ask for one thing.

        Args:
            operation: What is asked for.
            arguments: Plain values.
            wall_s: From the request to the whole answer.
            body: Goes with the request.
            files: Descriptors that go with it, to a program whose profile says that it holds files.
            max_bytes: Of the answer's body.
            target: Gets the parts of a file that come before the answer.
            max_target_bytes: Of all parts.
            on_progress: Called with each report of progress.

        Raises:
            ReportedError: The program reported an error.
            LimitExceededError: Time is up, the watch stopped the process, or more than ``max_target_bytes`` came.
            EngineFailureError: The process ended, or its answer breaks the form of messages.
        """
        answers = _Answers(self, wall_s, max_bytes, target, max_target_bytes, on_progress)
        try:
            self.process.send(pack_message({"operation": operation, "arguments": arguments}, body), wall_s, files)
            answer = answers.wait()
        except BaseException:
            self.process.kill()
            raise
        self.process.note_answered()
        if "error" in answer.header:
            raise ReportedError(answer.header["error"], is_last=answer.header.get("is_last") is True)
        return answer

    def receive(
        self, find_max: Callable[[dict[str, Any]], int], left_s: Callable[[], float]
    ) -> tuple[dict[str, Any], bytes]:
        """Receive one message of any kind.

        Args:
            find_max: How many bytes may follow a header.
            left_s: Seconds that are left.

        Raises:
            LimitExceededError, EngineFailureError: See ``ask``.
        """
        try:
            return read_message(lambda count: self.process.receive(count, left_s()), find_max)
        except (ValueError, RecursionError) as error:
            raise self.nonsense(f"an answer that makes no sense: {error}"[:_STATED_CHARACTERS]) from error

    def nonsense(self, found: str) -> EngineFailureError:
        """Return the error of an answer that breaks the form of messages."""
        return EngineFailureError(found, log=self.process.log)


@dataclass(slots=True)
class _Answers:
    """What comes of one request, up to the answer; arguments as for ``ask``."""

    program: ConfinedProgram
    wall_s: float
    max_bytes: int
    target: BinaryIO | None
    max_target_bytes: int
    on_progress: Callable[[int], None]
    began_s: float = field(default_factory=time.monotonic)
    reports: int = 0
    taken_bytes: int = 0

    def wait(self) -> ProgramOutput:
        """Return the answer."""
        while True:
            header, body = self._receive()
            match header:
                case {"part": True} if self.target is not None:
                    self._take_part(self.target, body)
                case {"progress": int(count)} if 0 <= count < _MAX_PROGRESS and not isinstance(count, bool):
                    self._take_report(count)
                case {"error": _} | {"result": _}:
                    return ProgramOutput(header, body)
                case _:
                    raise self.program.nonsense("an answer has neither result nor error")

    def _receive(self) -> tuple[dict[str, Any], bytes]:
        try:
            return self.program.receive(self._find_max, lambda: self.began_s + self.wall_s - time.monotonic())
        except LimitExceededError as error:
            if error.limit != "wall_s":
                raise
            raise LimitExceededError("wall_s", allowed=self.wall_s) from error

    def _find_max(self, header: dict[str, Any]) -> int:
        if "result" in header:
            return self.max_bytes
        return PART_BYTES if "part" in header and self.target is not None else 0

    def _take_part(self, target: BinaryIO, part: bytes) -> None:
        self.taken_bytes += len(part)
        if self.taken_bytes > self.max_target_bytes:
            raise LimitExceededError("written_bytes", allowed=self.max_target_bytes)
        target.write(part)

    def _take_report(self, count: int) -> None:
        self.reports += 1
        if self.reports > _MAX_AT_ONCE + _MAX_EACH_S * (time.monotonic() - self.began_s):
            raise self.program.nonsense(f"it reported {self.reports} times that it works, and nothing else")
        self.on_progress(count)
