"""Run code in a child process and stop it for good before any chosen system call that changes files.

The child is a fork, traced with ptrace: no switch exists in the code under test, and the steps inside SQLite count as
well. A filter of its own has the child stop at these calls alone: of all calls they are few, and each stop costs a
change of processes twice. A call can also be rejected, as a full disk rejects it. Linux only; the tests that use this
say so.
"""

import contextlib
import ctypes
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

# ptrace(2), linux/ptrace.h
_TRACEME: Final = 0
_CONT: Final = 7
_SETOPTIONS: Final = 0x4200
_GET_SYSCALL_INFO: Final = 0x420E
_O_TRACESECCOMP: Final = 1 << 7
_O_EXITKILL: Final = 1 << 20
_POKEUSER: Final = 6
# Where in "struct user" (sys/user.h) of x86-64 the number of the call is, and what it returns.
_ORIG_RAX: Final = 15 * 8
_RAX: Final = 10 * 8
_EVENT_SECCOMP: Final = 7
_AT_SECCOMP: Final = 3

# Number: (name, index of the argument with the path or descriptor, whether it is a path). asm/unistd.h
_CALLS: Final[dict[str, dict[int, tuple[str, int, bool]]]] = {
    "x86_64": {
        1: ("write", 0, False),
        18: ("pwrite64", 0, False),
        20: ("writev", 0, False),
        74: ("fsync", 0, False),
        75: ("fdatasync", 0, False),
        76: ("truncate", 0, True),
        77: ("ftruncate", 0, False),
        82: ("rename", 1, True),
        83: ("mkdir", 0, True),
        86: ("link", 1, True),
        87: ("unlink", 0, True),
        90: ("chmod", 0, True),
        91: ("fchmod", 0, False),
        257: ("openat", 1, True),
        258: ("mkdirat", 1, True),
        263: ("unlinkat", 1, True),
        264: ("renameat", 3, True),
        265: ("linkat", 3, True),
        285: ("fallocate", 0, False),
        316: ("renameat2", 3, True),
    },
    "aarch64": {
        64: ("write", 0, False),
        68: ("pwrite64", 0, False),
        66: ("writev", 0, False),
        82: ("fsync", 0, False),
        83: ("fdatasync", 0, False),
        45: ("truncate", 0, True),
        46: ("ftruncate", 0, False),
        38: ("renameat", 3, True),
        34: ("mkdirat", 1, True),
        37: ("linkat", 3, True),
        35: ("unlinkat", 1, True),
        52: ("fchmod", 0, False),
        53: ("fchmodat", 1, True),
        56: ("openat", 1, True),
        47: ("fallocate", 0, False),
        276: ("renameat2", 3, True),
    },
}

SUPPORTED: Final = sys.platform == "linux" and platform.machine() in _CALLS
CAN_REJECT: Final = SUPPORTED and platform.machine() == "x86_64"


class _SyscallInfo(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction_pointer", ctypes.c_uint64),
        ("stack_pointer", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
        ("rest", ctypes.c_uint64 * 2),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """A system call that changes files, and on which path."""

    call: str
    path: Path


@dataclass(frozen=True, slots=True)
class Run:
    """The steps that were begun; ``completed`` is False when the child was killed before the last of them."""

    steps: tuple[Step, ...]
    completed: bool


def run_until_step(scenario: Callable[[], None], kill_before: int | None) -> Run:
    """Run ``scenario`` in a child and SIGKILL it when it is about to make its step number ``kill_before`` (from 1)."""
    return _trace(_start(scenario), kill_before, lambda number: None)


def run_step_by_step(scenario: Callable[[], None], before_step: Callable[[int], None]) -> Run:
    """Run ``scenario`` in a child to its end; it rests while ``before_step`` looks at what is there before each step.

    What files hold at that moment is what a SIGKILL there would leave: its steps are counted from 1.
    """
    child = _start(scenario)
    try:
        return _trace(child, None, before_step)
    except BaseException:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise


def run_rejected(scenario: Callable[[], None], reject: Callable[[int, Step], int]) -> Run:
    """Run ``scenario`` in a child to its end; ``refuse`` names the error of each step; 0: it is done."""
    return _trace(_start(scenario), None, lambda number: None, reject)


def _start(scenario: Callable[[], None]) -> int:
    _stops()
    child = os.fork()
    if child == 0:
        _be_traced(scenario)
    return child


def _be_traced(scenario: Callable[[], None]) -> None:
    code = 1
    try:
        stops = _stops()
        _ptrace(_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        stops.load()
        scenario()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing of the test run may go on in the child
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


@cache
def _stops() -> Any:
    """The filter that stops at the calls which change files, where its tracer looks at them."""
    import pyseccomp

    stops, stop = pyseccomp.SyscallFilter(pyseccomp.ALLOW), pyseccomp.TRACE(0)
    for name, _, _ in _CALLS[platform.machine()].values():
        if name == "openat":
            for flag in (os.O_CREAT, os.O_TRUNC):
                stops.add_rule(stop, name, pyseccomp.Arg(2, pyseccomp.MASKED_EQ, flag, flag))
        else:
            stops.add_rule(stop, name)
    return stops


def _trace(
    child: int,
    kill_before: int | None,
    before_step: Callable[[int], None],
    reject: Callable[[int, Step], int] = lambda number, step: 0,
) -> Run:
    calls = _CALLS[platform.machine()]
    steps: list[Step] = []
    os.waitpid(child, 0)
    _ptrace(_SETOPTIONS, child, 0, _O_TRACESECCOMP | _O_EXITKILL)
    pending_signal = 0
    while True:
        _ptrace(_CONT, child, 0, pending_signal)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "the scenario failed in the child; see its standard error"
            return Run(tuple(steps), completed=True)
        assert os.WIFSTOPPED(status), f"the child ended with status {status:#x}"
        if status >> 16 != _EVENT_SECCOMP:
            pending_signal = os.WSTOPSIG(status)
            continue
        pending_signal = 0
        info = _SyscallInfo()
        _ptrace(_GET_SYSCALL_INFO, child, ctypes.sizeof(info), ctypes.addressof(info))
        assert info.op == _AT_SECCOMP
        name, index, is_path = calls[info.number]
        steps.append(Step(name, _read_path(child, info.arguments[index], is_path=is_path)))
        if len(steps) == kill_before:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Run(tuple(steps), completed=False)
        before_step(len(steps))
        if error := reject(len(steps), steps[-1]):
            # seccomp(2), SECCOMP_RET_TRACE: a call whose number its tracer makes -1 is not made.
            _ptrace(_POKEUSER, child, _ORIG_RAX, -1)
            _ptrace(_POKEUSER, child, _RAX, -error)


def _read_path(child: int, argument: int, *, is_path: bool) -> Path:
    if not is_path:
        return Path(f"/proc/{child}/fd/{argument & 0xFFFFFFFF}").readlink()
    with Path(f"/proc/{child}/mem").open("rb", buffering=0) as memory:
        memory.seek(argument)
        return Path(memory.read(4096).split(b"\0", 1)[0].decode())


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    return libc


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    if _libc().ptrace(request, pid, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace {request:#x}: {os.strerror(number)}")
