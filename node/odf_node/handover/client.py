"""A command that lets the daemon of its home do the work, if that would do it just so.

It runs before anything else is loaded and decides with a look into the home; every doubt means that the command goes on
as if there were no daemon.

Source: clauses HAND-1 to HAND-5 in ``spec/daemon.md``.
"""

import os
import sys

from odf_node.handover.request import (
    ENDED,
    GO,
    KILLED,
    READY,
    SOCKET_NAME,
    SWITCH_VARIABLE,
    encode_request,
)

TYPE_CHECKING = False  # as in ``typing``, which takes longer to load than all of this
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from typing import Final

HANDED_OVER: "Final" = frozenset({"list", "log", "pull", "push", "verify"})
"""Commands that are faster in a process that has loaded them."""
CONNECT_S: "Final" = 1.0  # guess: a fork server that is alive answers within milliseconds
BEGIN_S: "Final" = 15.0  # guess: a fork on a machine that is very busy
REPORT_S: "Final" = 15.0  # guess: longer than the fork server waits before it kills
UNAVAILABLE: "Final" = 5
"""The exit code of ``UnavailableError``, whose table is not loaded here."""

_PRIVATE: "Final" = 0o077


def hand_over(words: "Sequence[str]") -> "int | None":
    """Let the daemon run the command.

    Returns:
        Its exit code; None: nothing was begun, the command has to do the work by itself.
    """
    command, home = find_command_and_home(words)
    if command not in HANDED_OVER or home is None:
        return None
    if os.environ.get(SWITCH_VARIABLE, "").lower() in {"false", "0", "no"}:
        return None
    streams: list[object] = [sys.stdin, sys.stdout, sys.stderr]
    if None in streams:
        return None  # their descriptors are closed, or something else by now
    try:
        begun = _begin_there(home, words)
    except OSError:
        return None
    return None if begun is None else _await_end(*begun, command)


def find_command_and_home(words: "Sequence[str]") -> "tuple[str | None, str | None]":
    """Guess which command on which home is meant, as the parser will read it; the worker parses the words again.

    Returns:
        None instead of what cannot be told without the parser.
    """
    command, home = None, os.environ.get("ODF_NODE_HOME") or None
    left = iter(words)
    for word in left:
        if word == "--":
            break
        if word == "--home":
            home = next(left, "")
        elif word.startswith("--home="):
            home = word[len("--home=") :]
        elif word == "--system-time":
            next(left, None)
        elif command is None and not word.startswith("-"):
            command = word
    if home is None:
        data = os.environ.get("XDG_DATA_HOME", "")
        home = f"{data}/odf-node" if data.startswith("/") else "~/.local/share/odf-node"
    # pathlib takes longer to load than all of this.
    expanded = os.path.expanduser(home)  # noqa: PTH111
    if expanded == "" or expanded.startswith("~"):
        return command, None  # the parser has something to say about it
    return command, expanded


def connect(home: str) -> "socket.socket | None":
    """Connect to who takes commands of this home; None where nobody does, or another user.

    Raises:
        OSError: Nobody listens.
    """
    # The kernel allows names of 107 characters, while homes may lie deep.
    folder = os.open(f"{home}/staging/commands", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid() or status.st_mode & _PRIVATE:
            return None
        import socket

        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.settimeout(CONNECT_S)
            line.connect(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
            # Of struct ucred (socket(7)), three ints: the second one is the user.
            credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid():
                return line
        except BaseException:
            line.close()
            raise
        line.close()
        return None
    finally:
        os.close(folder)


def _begin_there(home: str, words: "Sequence[str]") -> "tuple[socket.socket, socket.socket] | None":
    """Hand the command over and let it begin; what is returned or raised otherwise means that nothing was begun."""
    line = connect(home)
    if line is None:
        return None
    import socket

    ours, theirs = socket.socketpair()
    try:
        with theirs:
            folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                message = encode_request(words, os.environb)
                sent = socket.send_fds(line, [message], [0, 1, 2, folder, theirs.fileno()])
                line.sendall(message[sent:])
            finally:
                os.close(folder)
        ours.settimeout(BEGIN_S)
        if ours.recv(1) == READY:
            ours.settimeout(None)
            line.settimeout(None)
            with _Forwarding(line) as forwarding:
                ours.sendall(GO)
                forwarding.stays = True
            return line, ours
    except BaseException:
        line.close()
        ours.close()
        raise
    line.close()
    ours.close()
    return None


class _Forwarding:
    """Hands on what would stop, pause or end this command; what is ignored stays ignored."""

    def __init__(self, line: "socket.socket") -> None:
        self._line = line
        self._before: dict[int, object] = {}
        self.stays = False

    def __enter__(self) -> "_Forwarding":
        import signal

        handlers = {signal.SIGINT: self._forward, signal.SIGTERM: self._forward, signal.SIGTSTP: self._pause}
        for number, handler in handlers.items():
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *exception: object) -> None:
        import signal

        if not self.stays:
            for number, handler in self._before.items():
                signal.signal(number, handler)  # type: ignore[arg-type]

    def _forward(self, number: int, _frame: object) -> None:
        try:
            self._line.send(bytes([number]))
        except OSError:
            return  # it has ended, which is about to be found out

    def _pause(self, _number: int, _frame: object) -> None:
        import signal

        self._forward(signal.SIGSTOP, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._forward(signal.SIGCONT, None)


def _await_end(line: "socket.socket", ours: "socket.socket", command: str) -> int:
    answer = b""
    try:
        while part := ours.recv(2 - len(answer)):
            answer += part
    except ConnectionError:
        pass
    if answer[:1] == ENDED and len(answer) > 1:
        return answer[1]
    line.settimeout(REPORT_S)
    try:
        report = line.recv(2)
    except OSError:
        report = b""
    if report[:1] == KILLED and len(report) > 1:
        import signal

        # Whoever waits for this command sees it end as the worker did.
        if report[1] != signal.SIGKILL:
            signal.signal(report[1], signal.SIG_DFL)
        os.kill(os.getpid(), report[1])
    print(
        f"odf-node {command}: the daemon that ran this command was killed; what was finished is kept, run it again",
        file=sys.stderr,
        flush=True,
    )
    return UNAVAILABLE
