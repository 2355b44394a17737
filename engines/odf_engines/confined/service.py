"""The side of a confined program: requests come in, answers go out, and what is printed goes to the log.

A program is a module with ``main(arguments)``, which ``entry`` runs. It makes one ``Service``, and answers its requests
by a table of operations (``serve``) or one by one.

Source: clauses SANDBOX-4 and SANDBOX-7 in ``spec/extensions/sandbox.md``.
"""

import io
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from odf_engines.confined.messages import PART_BYTES, pack_message, read_message

_MAX_FILES: Final = 253  # Source: unix(7), SCM_RIGHTS
_READ_BYTES: Final = 64 * 1024
_ANY_SIZE: Final = 2**63 - 1

Result = tuple[Any, bytes]
"""A plain value, and the bytes that follow it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked; from the trusted side.

    Attributes:
        operation: What is asked for.
        arguments: Plain values.
        body: Bytes that came with it.
        files: Descriptors that came with it; who answers closes them.
        service: Sends the answer.
    """

    operation: str
    arguments: dict[str, Any]
    body: bytes
    files: tuple[int, ...]
    service: "Service"

    def report(self, count: int) -> None:
        """Report progress: how much was done so far."""
        self.service.send({"progress": count})

    def open_parts(self) -> "Parts":
        """Return a file whose content goes out in parts before the answer."""
        return Parts(self.service)


class Parts(io.BufferedIOBase):
    """A file that goes out of the sandbox in parts, the last one with ``flush_all``."""

    def __init__(self, service: "Service") -> None:
        self._service, self._held = service, bytearray()

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
            self._service.send({"part": True}, view[start : start + PART_BYTES])


class Service:
    """Takes over standard input and output of this process."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        is_socket = stat.S_ISSOCK(os.fstat(0).st_mode)
        self._socket = socket.socket(fileno=os.dup(0)) if is_socket else None
        self._pending, self._files = bytearray(), list[int]()

    def send(self, header: Mapping[str, Any], body: bytes | memoryview = b"") -> None:
        """Send one message."""
        self._answers.write(pack_message(header, body))
        self._answers.flush()

    def report_ready(self) -> None:
        """Report that requests can come, to who waits for it."""
        self.send({"ready": True})

    def iter_requests(self) -> Iterator[Request]:
        """Yield what is asked, until the input ends."""
        while self._has_more():
            header, body = read_message(self._read, lambda _header: _ANY_SIZE)
            files = tuple(self._files)
            self._files.clear()
            yield Request(header["operation"], header["arguments"], body, files, self)

    def serve(
        self,
        operations: Mapping[str, Callable[[Request], Result]],
        explain: Callable[[Exception], Any],
    ) -> None:
        """Answer until the input ends.

        Args:
            operations: What is done for each; a new operation is one more entry.
            explain: Makes of an error what is told of it, plain values.
        """
        for request in self.iter_requests():
            try:
                result, body = operations[request.operation](request)
            except Exception as error:  # noqa: BLE001 - the edge of the program, which goes on
                self.send({"error": explain(error)})
            else:
                self.send({"result": result}, body)

    def _has_more(self) -> bool:
        if not self._pending:
            self._fill()
        return bool(self._pending)

    def _read(self, count: int) -> bytes:
        while len(self._pending) < count:
            if not self._fill():
                raise EOFError("a request is cut off")
        found = bytes(self._pending[:count])
        del self._pending[:count]
        return found

    def _fill(self) -> int:
        if self._socket is None:
            found = os.read(0, _READ_BYTES)
        else:
            found, files, _, _ = socket.recv_fds(self._socket, _READ_BYTES, _MAX_FILES)
            self._files += files
        self._pending += found
        return len(found)
