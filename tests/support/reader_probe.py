"""What a file would try that has taken over the reader of slices: stands in for its program, answers what each gave.

Run by ``odf_engines.confined.entry`` in the reader's place; asked as the reader is, with one open file. Each attempt
returns when it succeeds, and else raises what the kernel answered.
"""

# ruff: noqa: PTH102, PTH106, PTH108, PTH123, PTH208, SIM115 - system calls, plainly

import ctypes
import mmap
import os
import signal
import socket
from typing import Any

from odf_engines.confined.service import Request, Result, Service

LIBC = ctypes.CDLL(None, use_errno=True)


def read_key(facts: dict[str, Any], _file: int) -> None:
    """Read what signs for the node."""
    os.open(facts["key"], os.O_RDONLY)


def list_home(facts: dict[str, Any], _file: int) -> None:
    """Look for what else there is."""
    os.listdir(facts["home"])


def read_other_object(facts: dict[str, Any], _file: int) -> None:
    """Read a slice of another dataset."""
    os.open(facts["other"], os.O_RDONLY)


def read_file_of_another_user(facts: dict[str, Any], _file: int) -> None:
    """Read what every user of a machine can."""
    os.open("/etc/passwd", os.O_RDONLY)


def list_home_of_user(facts: dict[str, Any], _file: int) -> None:
    """List the folder with the keys of other programs."""
    os.listdir(facts["user_home"])


def reach_port(facts: dict[str, Any], _file: int) -> None:
    """Speak with a server of this machine."""
    socket.create_connection(("127.0.0.1", facts["port"]), timeout=20).close()


def reach_abstract_socket(facts: dict[str, Any], _file: int) -> None:
    """Speak with a program of this user that listens without a file."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + facts["abstract"])


def send_packet_outside(facts: dict[str, Any], _file: int) -> None:
    """Give away what was read; nobody need answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("192.0.2.1", 9))  # Source: RFC 5737, TEST-NET-1


def signal_process(facts: dict[str, Any], _file: int) -> None:
    """Stop another program of this user."""
    os.kill(facts["victim"], signal.SIGCONT)


def read_environment_of_process(facts: dict[str, Any], _file: int) -> None:
    """Read what another program was told in secret."""
    assert b"SECRET" in open(f"/proc/{facts['victim']}/environ", "rb").read()


def trace_process(facts: dict[str, Any], _file: int) -> None:
    """Read the memory of another program, or steer it."""
    _call(LIBC.ptrace(0x4206, facts["victim"], None, None))  # PTRACE_SEIZE


def write_beside_the_file(facts: dict[str, Any], _file: int) -> None:
    """Leave something in the folder of the objects."""
    os.mkdir(facts["new"])


def remove_other_object(facts: dict[str, Any], _file: int) -> None:
    """Remove what another dataset needs."""
    os.unlink(facts["bait"])


def write_temporary_file(facts: dict[str, Any], _file: int) -> None:
    """Leave something where every program may."""
    os.mkdir("/tmp/odf-reader-probe")
    os.rmdir("/tmp/odf-reader-probe")


def start_shell(facts: dict[str, Any], _file: int) -> None:
    """Run a program of the machine."""
    assert os.posix_spawn("/bin/sh", ["sh", "-c", "true"], {})


def read_token(facts: dict[str, Any], _file: int) -> None:
    """Read the node's settings."""
    if "ODF_NODE_TOKEN" not in os.environ:
        raise FileNotFoundError(2, "no token")


def open_handed_file_for_writing(facts: dict[str, Any], file: int) -> None:
    """Open what was handed over again, to write to it; its mode allows that to this user."""
    os.close(os.open(f"/proc/self/fd/{file}", os.O_RDWR))


def change_mode_of_handed_file(facts: dict[str, Any], file: int) -> None:
    """Make it another user's to change."""
    os.fchmod(file, 0o666)


def change_times_of_handed_file(facts: dict[str, Any], file: int) -> None:
    """Make it look older."""
    os.utime(file, (0, 0))


def change_attributes_of_handed_file(facts: dict[str, Any], file: int) -> None:
    """Mark it as not to be dumped."""
    _call(LIBC.fsetxattr(file, b"user.odf", b"x", 1, 0))


def lock_handed_file(facts: dict[str, Any], file: int) -> None:
    """Let others wait for it."""
    _call(LIBC.flock(file, 2))


def write_to_handed_file(facts: dict[str, Any], file: int) -> None:
    """Write through the descriptor."""
    os.write(file, b"x")


def cut_handed_file(facts: dict[str, Any], file: int) -> None:
    """Shorten it."""
    os.ftruncate(file, 0)


def map_handed_file_for_writing(facts: dict[str, Any], file: int) -> None:
    """Write through memory."""
    mmap.mmap(file, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)


ATTEMPTS = {
    each.__name__: each
    for each in (
        read_key, list_home, read_other_object, read_file_of_another_user, list_home_of_user, reach_port,
        reach_abstract_socket, send_packet_outside, signal_process, read_environment_of_process, trace_process,
        write_beside_the_file, remove_other_object, write_temporary_file, start_shell, read_token,
        open_handed_file_for_writing, change_mode_of_handed_file, change_times_of_handed_file,
        change_attributes_of_handed_file, lock_handed_file, write_to_handed_file, cut_handed_file,
        map_handed_file_for_writing,
    )
}  # fmt: skip


def main(_arguments: dict[str, Any]) -> None:
    """Answer each request with what each attempt gave: 0, or the number of the error."""
    before = sum(map(_is_open, range(3, 256)))
    service = Service()
    own = sum(map(_is_open, range(3, 256))) - before

    def answer(request: Request) -> Result:
        found = {name: _try(name, request.arguments["facts"], request.files[0]) for name in ATTEMPTS}
        found["descriptors beside"] = sum(map(_is_open, range(3, 256))) - len(request.files) - own
        return found, b""

    service.serve({"any": answer}, str)


def _try(name: str, facts: dict[str, Any], file: int) -> int:
    try:
        ATTEMPTS[name](facts, file)
    except OSError as error:
        return error.errno or -1
    return 0


def _call(answer: int) -> None:
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
