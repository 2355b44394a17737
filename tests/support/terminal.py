"""A program on a real terminal: a pseudo-terminal whose other end is typed to and read from."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.command_line import environment_of, hear_ctrl_c

PATIENCE_S = 25.0  # guess: an engine starts within a second, on a machine that is not busy
ASKED = "<prompt>"
"""What stands in the text where a prompt begins to listen."""

_LISTENS = "\x1b[?2004h"  # it wants pasted text in brackets (xterm)
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """What is on the other end of the line."""

    def __init__(self, process: subprocess.Popen[bytes], line: int) -> None:
        self.process = process
        self._line = line
        self._raw = b""
        self._seen = 0

    @property
    def text(self) -> str:
        """All that was shown, without what moves the cursor."""
        return _STEERING.sub("", self._raw.decode(errors="replace").replace(_LISTENS, ASKED))

    def type(self, keys: str) -> None:
        os.write(self._line, keys.encode())

    def ask(self, line: str, *expected: str) -> str:
        """Type a line and Enter; returns what came since then, up to the last thing expected."""
        self.type(f"{line}\r")
        return "".join(self.wait_for(each) for each in expected)

    def wait_for(self, expected: str) -> str:
        """Wait until this appears behind what was waited for before."""
        give_up_at = time.monotonic() + PATIENCE_S
        while (place := self.text.find(expected, self._seen)) < 0:
            assert time.monotonic() < give_up_at, f"no {expected!r} in {self.text[self._seen :]!r}"
            self._read()
        before, self._seen = self._seen, place + len(expected)
        return self.text[before : self._seen]

    def wait_for_end(self) -> int:
        give_up_at = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < give_up_at, self.text
            self._read()
        return self.process.returncode

    def _read(self) -> None:
        if select.select([self._line], [], [], 0.05)[0]:
            try:
                self._raw += os.read(self._line, 65536)
            except OSError:  # the program has ended
                time.sleep(0.01)


@contextmanager
def terminal(
    home: Path, *words: str, environment: Mapping[str, str] | None = None, lines: int = 40
) -> Iterator[Terminal]:
    """Run ``odf-node`` on a terminal of 120 columns until the block ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 120, 0, 0))
    # It asks where its cursor is, which only a whole terminal could answer.
    more = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PAGER": "", **(environment or {})}

    def take_terminal() -> None:
        hear_ctrl_c()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "odf_node", *words],
        env=environment_of(home, **more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)
