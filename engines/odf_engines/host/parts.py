"""Bytes that come out of the sandbox before an answer, in parts: a line of JSON with their number, then the bytes."""

import io
import json
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from odf_engines.errors import LimitExceededError

if TYPE_CHECKING:
    from odf_engines.sandbox.process import SandboxedProcess

PART_BYTES: Final = 1024 * 1024  # guess: large enough that its line of JSON costs nothing


class Parts(io.BufferedIOBase):
    """Inside: a file that goes out through standard output, piece by piece."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        """See ``io``."""
        return True

    def write(self, data: Any) -> int:
        """See ``io``."""
        self._held += data
        if len(self._held) >= PART_BYTES:
            self.flush_all()
        return len(data)

    def flush_all(self) -> None:
        """Send what is held."""
        view = memoryview(bytes(self._held))
        self._held.clear()
        for start in range(0, len(view), PART_BYTES):
            part = view[start : start + PART_BYTES]
            sys.stdout.buffer.write(json.dumps({"part": len(part)}).encode() + b"\n")
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


def receive_parts(
    process: "SandboxedProcess", wall_s: float, target: BinaryIO | None, *, most_bytes: int
) -> dict[str, Any]:
    """Outside: return the answer, as unchecked as it came; what comes before it goes to ``target``.

    Raises:
        LimitExceededError: More than ``most_bytes`` come, or see ``SandboxedProcess``.
        EngineFailureError: See ``SandboxedProcess``.
        ValueError, TypeError, LookupError, RecursionError: It makes no sense.
        HomeFullError, HomeReadOnlyError: Of ``target``.
    """
    written_bytes = 0
    while True:
        answer: dict[str, Any] = json.loads(process.receive(wall_s))
        if target is None or "part" not in answer:
            return answer
        part_bytes = count_of(answer["part"], PART_BYTES)
        written_bytes += part_bytes
        if written_bytes > most_bytes:
            raise LimitExceededError("written_bytes", allowed=most_bytes)
        target.write(process.receive_bytes(part_bytes, wall_s))


def count_of(value: Any, most: int) -> int:
    """Return a count that somebody may have made up.

    Raises:
        ValueError: It is none, or more than ``most``.
    """
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"expected a count of at most {most}")
    return value
