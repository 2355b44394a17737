"""The escape suite's attempts to use the machine up, in the open and hidden, and the limit that ends each."""

from dataclasses import dataclass, field
from typing import Any

MIB = 1024 * 1024

PRELUDE = """
import mmap, os, resource, sys, threading, time
os.chdir("/exchange/out")
sys.path.insert(0, "/runtime/ours")
from odf_engines.sandbox.resources import set_kernel_limits
set_kernel_limits(LIMITS)
def fill(megabytes):
    data = bytearray(megabytes * 2**20)
    data[::4096] = b"x" * len(data[::4096])
    return data
def fork(count, work):
    for _ in range(count):
        try:
            if os.fork() == 0:
                work()
                os._exit(0)
        except OSError:
            time.sleep(0.05)
def rest():
    time.sleep(DURATION)
"""


SPIN = """
def spin(seconds):
    while time.process_time() < seconds: pass
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is tried, the limits it meets, and the one that ends it.

    Attributes:
        code: Python; ``DURATION`` is how long it holds what it took.
        limits: Of the sandbox, over the defaults.
        stopped_by: Field of ``Limits``, or what the error is about.
        is_endless: It cannot end by itself, whatever the limits, so there is no run to its end.
    """

    code: str
    stopped_by: str
    limits: dict[str, Any] = field(default_factory=dict)
    is_endless: bool = False


ATTEMPTS = {
    "memory_of_one_process": Attempt("held = fill(400); rest()", "memory_bytes", {"memory_bytes": 256 * MIB}),
    "memory_of_many_processes": Attempt(
        "fork(6, lambda: (fill(60), rest())); rest()", "memory_bytes", {"memory_bytes": 256 * MIB}
    ),
    "memory_of_threads": Attempt(
        "held = []\nfor _ in range(4): threading.Thread(target=lambda: held.append(fill(100))).start()\nrest()",
        "memory_bytes", {"memory_bytes": 256 * MIB},
    ),
    "fork_bomb": Attempt("fork(100, rest); rest()", "processes", {"processes": 60}),
    "thread_bomb": Attempt(
        "for _ in range(100):\n    try: threading.Thread(target=rest).start()\n"
        "    except RuntimeError: time.sleep(0.05)\nrest()",
        "processes", {"processes": 60},
    ),
    "detached_processes": Attempt(
        "fork(30, lambda: (os.setsid(), fork(1, rest))); rest()", "processes", {"processes": 20}
    ),
    "open_descriptors": Attempt(
        "fork(3, lambda: ([os.open('/dev/null', 0) for _ in range(4000)], rest())); rest()", "descriptors"
    ),
    "disk_in_plain_sight": Attempt(
        "for n in range(16): open(f'{n}', 'wb').write(bytes(2**23))\nrest()", "output_bytes",
        {"output_bytes": 64 * MIB},
    ),
    "disk_in_deleted_files": Attempt(
        "held = []\nfor n in range(16):\n    held.append(open('x', 'wb', 0))\n"
        "    held[-1].write(bytes(2**23)); os.unlink('x')\nrest()",
        "output_bytes", {"output_bytes": 64 * MIB},
    ),
    "disk_in_mapped_files": Attempt(
        "held = []\nfor n in range(16):\n    f = open('x', 'w+b'); f.write(bytes(2**23)); f.flush()\n"
        "    held.append(mmap.mmap(f.fileno(), 4096)); f.close(); os.unlink('x')\nrest()",
        "output_bytes", {"output_bytes": 64 * MIB},
    ),
    "disk_in_sockets": Attempt(
        "import array, socket\none, other = socket.socketpair()\nfor n in range(16):\n"
        "    f = open('x', 'wb', 0); f.write(bytes(2**23)); os.unlink('x')\n"
        "    one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f.fileno()]))])\n"
        "    f.close()\nrest()",
        "output_bytes", {"output_bytes": 64 * MIB},
    ),
    "disk_reserved": Attempt(
        "f = open('x', 'wb'); os.posix_fallocate(f.fileno(), 0, 2**26)\n"
        "f = open('y', 'wb'); os.posix_fallocate(f.fileno(), 0, 2**26); rest()",
        "output_bytes", {"output_bytes": 64 * MIB},
    ),
    "disk_in_deep_folders": Attempt(
        "for _ in range(1100): os.mkdir('d'); os.chdir('d')\nopen('x', 'wb').write(bytes(2**20)); rest()",
        "output_files",
    ),
    "many_entries": Attempt("for n in range(30_000): os.close(os.open(f'{n}', os.O_CREAT))\nrest()", "output_files"),
    "one_large_file": Attempt(
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('x', 'wb').truncate(2**27)",
        "exit code 153",
        {"output_bytes": 64 * MIB},
    ),
    # The kernel's limit, in whole seconds; below, where none of the processes reaches that, the watch's.
    "processor_time": Attempt(
        "while time.process_time() < 1.2: pass", "cpu_s",
        {"cpu_s": 1},
    ),
    "processor_time_of_many_processes": Attempt(
        f"{SPIN}for _ in range(int(DURATION * 4)): fork(2, lambda: spin(0.2)); os.wait(); os.wait()",
        "cpu_s", {"cpu_s": 0.3},
    ),
    "processor_time_of_ended_processes": Attempt(
        f"{SPIN}for _ in range(int(DURATION * 40)): fork(1, lambda: spin(0.03)); os.wait()", "cpu_s", {"cpu_s": 0.3}
    ),
    "processor_time_of_disowned_processes": Attempt(
        f"{SPIN}import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for _ in range(int(DURATION * 5)):\n    fork(1, lambda: spin(0.2))\n    try: os.wait()\n"
        "    except ChildProcessError: pass",
        "cpu_s", {"cpu_s": 0.3},
    ),
    "silence": Attempt("rest()", "wall_s", {"wall_s": 0.05}),
    "endless_answer": Attempt("while True: sys.stdout.write('x' * 65536)", "more than", is_endless=True),
}  # fmt: skip

# Those that are ended whatever the limits: no setting widens the bounds of entries, depth and descriptors, and what
# waits in sockets is never measured.
FIXED = {"open_descriptors", "disk_in_deep_folders", "disk_in_sockets", "many_entries"}
