"""What a compromised engine would try, run inside a sandbox: no imports beyond the standard library.

Each attempt runs in a process of its own. It returns what it got (``done``), raises OSError with what the kernel
answered (``errno``), or is ended by a signal.

Run: escape_program.py '{"names": [...], "facts": {...}}'; answers with one line of JSON.
"""

# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH123, PTH208, PTH211 - system calls are what this is about, so they are made as plainly as possible

import ctypes
import errno
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
FACTS = {}
ATTEMPTS = {}
PATIENCE_S = 120.0

AT_FDCWD = -100
PARENT = os.getpid()  # of every attempt
SECRET = ctypes.create_string_buffer(b"secret of the parent")  # at the same address in every attempt

# Numbers of x86-64, and arguments that do no harm where the call is allowed.
CALLS = {
    "ptrace": (101, 0, 0, 0, 0),
    "process_vm_writev": (311, PARENT, 0, 0, 0, 0, 0),
    "process_madvise": (440, -1, 0, 0, 0, 0),
    "kcmp": (312, PARENT, PARENT, 0, 0, 0),
    "chroot": (161, b"/scratch"),
    "mount_setattr": (442, -1, b"", 0, 0, 0),
    "move_mount": (429, -1, b"", -1, b"", 0),
    "open_tree": (428, AT_FDCWD, b"/scratch", 1),
    "fsopen": (430, b"tmpfs", 0),
    "fsconfig": (431, -1, 0, 0, 0, 0),
    "fsmount": (432, -1, 0, 0),
    "fspick": (433, AT_FDCWD, b"/scratch", 0),
    "swapon": (167, b"/scratch/x", 0),
    "swapoff": (168, b"/scratch/x"),
    "quotactl": (179, 0x80000100, b"/scratch/x", 0, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "unshare_user": (272, 0x10000000),
    "unshare_mounts": (272, 0x00020000),
    "setns": (308, -1, 0),
    "clone3": (435, 0, 0),
    "bpf": (321, 0, b"\x02\0\0\0\x04\0\0\0\x04\0\0\0\x01\0\0\0" + bytes(104), 120),
    "userfaultfd": (323, 1),
    "perf_event_open": (298, struct.pack("<IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x61) + bytes(68), 0, -1, -1, 0),
    "io_uring_setup": (425, 1, bytes(120)),
    "io_uring_enter": (426, -1, 0, 0, 0, 0, 0),
    "io_uring_register": (427, -1, 0, 0, 0),
    "add_key": (248, b"user", b"x", b"y", 1, -2),
    "request_key": (249, b"user", b"odf-nothing", 0, 0),
    "keyctl": (250, 0, -3, 1),
    "fanotify_init": (300, 0x200, 0),
    "modify_ldt": (154, 0, bytes(16), 16),
    "vhangup": (153,),
    "acct": (163, b"/scratch/x"),
    "landlock_create_ruleset": (444, 0, 0, 1),
    "memfd_secret": (447, 0),
    "init_module": (175, 0, 0, b""),
    "finit_module": (313, -1, b"", 0),
    "delete_module": (176, b"odf_nothing", 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "kexec_file_load": (320, -1, -1, 0, b"", 0),
    "reboot": (169, 0, 0, 0, 0),
    "syslog": (103, 10, 0, 0),
    "sethostname": (170, b"owned", 5),
    "setdomainname": (171, b"owned", 5),
    "iopl": (172, 3),
    "ioperm": (173, 0x70, 1, 1),
    "settimeofday": (164, 0, bytes(8)),
    "clock_settime": (227, 99, bytes(16)),
    "clock_adjtime": (305, 99, bytes(208)),
    "adjtimex": (159, bytes(208)),
    "personality": (135, 0x0040000),
    "move_pages": (279, 0, 0, 0, 0, 0, 0),
    "migrate_pages": (256, 0, 0, 0, 0),
    "memfd_create": (319, b"x", 0),
    "shmget": (29, 0, 4096, 0o1600),
    "msgget": (68, 0, 0o1600),
    "semget": (64, 0, 1, 0o1600),
    "mq_open": (240, b"x", 0o102, 0o600, 0),
}


def attempt(function):
    """Make a function known under its name."""
    ATTEMPTS[function.__name__] = function
    return function


def call(number, *arguments):
    """Make a system call."""
    values = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


for _name, _call in CALLS.items():
    ATTEMPTS[_name] = lambda _call=_call: call(*_call)


# --- system calls that need preparation


@attempt
def process_vm_readv():
    own = ctypes.create_string_buffer(20)
    call(
        310, PARENT, struct.pack("<QQ", ctypes.addressof(own), 20), 1,
        struct.pack("<QQ", ctypes.addressof(SECRET), 20), 1, 0,
    )  # fmt: skip
    return own.raw


@attempt
def pidfd_getfd():
    call(438, os.pidfd_open(PARENT), 0, 0)


def _alone():
    """Leave the mounts of the other attempts as they are, where that is possible."""
    LIBC.syscall(272, 0x00020000)


@attempt
def mount():
    _alone()
    os.makedirs("/scratch/mounted", exist_ok=True)
    call(165, b"none", b"/scratch/mounted", b"tmpfs", 0, 0)


@attempt
def umount2():
    _alone()
    call(166, b"/scratch", 2)


@attempt
def pivot_root():
    _alone()
    call(155, b".", b".")


@attempt
def remount_root_writable():
    _alone()
    call(165, b"none", b"/", b"", 0x20 | 0x1000, 0)


@attempt
def name_to_handle_at():
    call(303, AT_FDCWD, b"/scratch", struct.pack("<I", 128) + bytes(132), bytes(8), 0)


def _clone(flags):
    result = call(56, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if result == 0:
        os._exit(0)
    os.waitpid(result, 0)


@attempt
def clone_user():
    _clone(0x10000000)


@attempt
def clone_network():
    _clone(0x40000000)


@attempt
def execute_from_memory():
    """Run a program that has no path."""
    descriptor = call(319, b"program", 0)
    os.write(descriptor, Path("/usr/bin/chmod").read_bytes())
    child = os.fork()
    if child == 0:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.execve(descriptor, ["chmod", "--version"], dict(os.environ))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(errno.ENOEXEC, "the program did not run")


def _machine_code(code):
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


@attempt
def call_of_32_bits():
    """Call getpid by its 32-bit number, past a filter that looks only at 64-bit ones."""
    return _machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")


@attempt
def call_of_x32():
    """Call getpid with the bit of the x32 interface."""
    return call(0x40000000 | 39)


@attempt
def type_into_terminal():
    terminal = int(FACTS.get("terminal", 0))
    if terminal:
        os.setsid()
        fcntl.ioctl(terminal, 0x540E, 0)
    fcntl.ioctl(terminal, 0x5412, b"x")


@attempt
def paste_into_terminal():
    fcntl.ioctl(0, 0x541C, b"\x03")


@attempt
def type_into_terminal_with_high_bits():
    """Hide the number of the request above the 32 bits that the kernel looks at."""
    call(16, 0, 0x5412 | 1 << 32, b"x")


@attempt
def shared_memory_without_name():
    """Fill memory, give up the view of it piece by piece, and be resident nowhere."""
    memory = mmap.mmap(-1, 2**20)
    memory.write(b"x")
    memory.madvise(mmap.MADV_DONTNEED)


# --- sockets


@attempt
def socket_families():
    """Try every family but the two that Java and Python need."""
    made, refusals = [], set()
    for family in range(65):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(family, kind).close()
            except OSError as error:
                refusals.add(error.errno)
                if family in (1, 2) or error.errno in (errno.EAFNOSUPPORT, FACTS["mark"]):
                    continue
            if family not in (1, 2):
                made.append(family)
    if not made:
        raise OSError(FACTS["mark"] if FACTS["mark"] in refusals else errno.EAFNOSUPPORT, "no family")
    return sorted(set(made))


def _socket(family, kind, protocol=0):
    socket.socket(family, kind, protocol).close()


for _name, _arguments in {
    "socket_inet6": (10, 1),
    "socket_netlink": (16, 3),
    "socket_packet": (17, 3),
    "socket_alg": (38, 5),
    "socket_vsock": (40, 1),
}.items():
    ATTEMPTS[_name] = lambda _arguments=_arguments: _socket(*_arguments)


@attempt
def raw_socket():
    _socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


@attempt
def privileged_port():
    socket.socket().bind(("127.0.0.1", 80))


@attempt
def mark_packets():
    socket.socket().setsockopt(socket.SOL_SOCKET, 36, 7)


@attempt
def raise_capabilities():
    header, data = struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", *[1 << 21, 1 << 21, 0, 0, 0, 0])
    call(126, header, data)


@attempt
def reach_host_port():
    socket.create_connection(("127.0.0.1", int(FACTS["port"])), 2).close()


@attempt
def reach_abstract_socket():
    socket.socket(socket.AF_UNIX).connect("\0" + FACTS["abstract"])


@attempt
def see_network_interfaces():
    others = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    if others == ["lo"]:
        raise OSError(errno.ENODEV, "only the loopback")
    return others


@attempt
def reach_outside():
    """Ask for a route to an address of RFC 5737, which nobody has; nothing is sent."""
    socket.socket(type=socket.SOCK_DGRAM).connect(("192.0.2.1", 9))


@attempt
def reach_named_socket():
    socket.socket(socket.AF_UNIX).connect(FACTS["bait_socket"])


# --- files of the host


def _open(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags))


@attempt
def read_host_file():
    return Path(FACTS["bait"]).read_text()


@attempt
def read_host_file_through_root_of_process():
    return Path(f"/proc/{FACTS['first']}/root{FACTS['bait']}").read_text()


@attempt
def read_host_file_through_link():
    path = "/scratch/link"
    os.symlink(FACTS["bait"], path)
    return Path(path).read_text()


for _name, _arguments in {
    "read_passwords": ("/etc/shadow",),
    "list_home_of_root": ("/root", os.O_DIRECTORY),
    "list_homes": ("/home", os.O_DIRECTORY),
    "open_system_tree": ("/sys/kernel", os.O_DIRECTORY),
    "open_shared_memory_folder": ("/dev/shm", os.O_DIRECTORY),
    "list_terminals": ("/dev/pts", os.O_DIRECTORY),
    "open_kernel_log": ("/dev/kmsg",),
    "open_zero_device": ("/dev/zero",),
    "open_fuse": ("/dev/fuse", os.O_RDWR),
    "open_loop_control": ("/dev/loop-control", os.O_RDWR),
    "open_tun": ("/dev/net/tun", os.O_RDWR),
    "open_shell": ("/bin/sh",),
    "write_system_library": ("/usr/lib/os-release", os.O_WRONLY),
    "write_engine_code": ("/runtime/ours/odf_engines/__init__.py", os.O_WRONLY),
    "write_python_library": (
        f"/runtime/python/lib/python{sys.version_info[0]}.{sys.version_info[1]}/os.py",
        os.O_WRONLY,
    ),
    "write_spark": ("/runtime/site/pyspark/__init__.py", os.O_WRONLY),
    "write_core_pattern": ("/proc/sys/kernel/core_pattern", os.O_WRONLY),
    "write_hostname_setting": ("/proc/sys/kernel/domainname", os.O_WRONLY),
    "write_overcommit": ("/proc/sys/vm/overcommit_memory", os.O_WRONLY),
    "press_sysrq": ("/proc/sysrq-trigger", os.O_WRONLY),
}.items():
    ATTEMPTS[_name] = lambda _arguments=_arguments: _open(*_arguments)


@attempt
def make_file_in_root():
    os.mkdir("/made")


@attempt
def make_file_in_devices():
    os.mkdir("/dev/made")


@attempt
def overwrite_input():
    with open(FACTS["input"], "r+b") as file:
        file.write(b"other")


@attempt
def truncate_input():
    os.truncate(FACTS["input"], 1)


@attempt
def change_modes_of_input():
    os.chmod(FACTS["input"], 0o777)


@attempt
def change_times_of_input():
    os.utime(FACTS["input"], (1, 1))


@attempt
def remove_input():
    os.unlink(FACTS["input"])


@attempt
def link_input_to_output():
    os.link(FACTS["input"], FACTS["out"] + "/linked")


@attempt
def make_block_device():
    os.mknod(FACTS["out"] + "/disk", 0o60600, os.makedev(254, 0))


@attempt
def forbid_removal_of_output():
    """Mark a file of the output as immutable, so that even its owner cannot remove it."""
    descriptor = os.open(FACTS["out"] + "/forever", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.ioctl(descriptor, 0x40086602, struct.pack("<l", 0x10))
    fcntl.ioctl(descriptor, 0x40086602, struct.pack("<l", 0))


# --- processes of the host


@attempt
def see_host_process():
    return Path(f"/proc/{FACTS['victim']}/cmdline").read_text()


@attempt
def read_environment_of_host_process():
    text = Path(f"/proc/{FACTS['victim']}/environ").read_text()
    if FACTS["secret"] not in text:
        raise OSError(errno.ENOENT, "no secret")


@attempt
def signal_host_process():
    os.kill(int(FACTS["victim"]), signal.SIGCONT)


@attempt
def slow_host_process():
    os.setpriority(os.PRIO_PROCESS, int(FACTS["victim"]), 10)


@attempt
def limit_host_process():
    import resource

    resource.prlimit(int(FACTS["victim"]), resource.RLIMIT_CORE, (0, 0))


@attempt
def attach_host_shared_memory():
    call(30, call(29, int(FACTS["shared_memory_key"]), 0, 0), 0, 0o10000)


# --- what leaks in


@attempt
def use_inherited_descriptor():
    return os.read(int(FACTS["descriptor"]), 100).decode()


@attempt
def count_inherited_descriptors():
    listing = {int(name) for name in os.listdir("/proc/self/fd")}
    more = {each for each in listing if each > 2 and _is_open(each)} - {int(FACTS["answer"])}
    if not more:
        raise OSError(errno.EBADF, "only the three standard ones")
    return sorted(more)


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@attempt
def read_environment():
    if FACTS["secret"] not in str(os.environ):
        raise OSError(errno.ENOENT, "no secret")


@attempt
def read_environment_of_first_process():
    if FACTS["secret"] not in Path("/proc/1/environ").read_text():
        raise OSError(errno.ENOENT, "no secret")


# --- limits of the kernel


@attempt
def raise_limit_of_files():
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    except ValueError as error:
        raise PermissionError(errno.EPERM, str(error)) from error


@attempt
def dump_core():
    import resource

    if resource.getrlimit(resource.RLIMIT_CORE)[0] == 0:
        raise OSError(errno.EPERM, "no core files")


@attempt
def lock_memory():
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if LIBC.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), ctypes.c_size_t(4096)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@attempt
def open_many_files():
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(5000)]
    return len(held)


@attempt
def reserve_address_space():
    mmap.mmap(-1, 2**36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)


@attempt
def write_large_file():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open(FACTS["out"] + "/large", "wb") as file:
        file.truncate(2**33)
    os.unlink(FACTS["out"] + "/large")


def _run(name, descriptor):
    """Run an attempt in this process and write what came of it."""
    try:
        got = ATTEMPTS[name]()
        answer = {"outcome": "done", "got": repr(got)[:200]}
    except OSError as error:
        answer = {"outcome": "errno", "errno": error.errno or 0}
    except Exception as error:  # noqa: BLE001 - a mistake in the attempt itself
        answer = {"outcome": "broken", "got": repr(error)}
    os.write(descriptor, json.dumps(answer).encode())
    os._exit(0)


def main():
    """Run the attempts one after another."""
    asked = json.loads(sys.argv[1])
    FACTS.update(asked["facts"])
    for name in asked.get("limits", {}):
        import resource

        which = getattr(resource, name, 12)
        hard = resource.getrlimit(which)[1]
        value = asked["limits"][name]
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (bounded, bounded))
    answers = {}
    for name in asked["names"]:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            FACTS["answer"] = writer
            _run(name, writer)
        os.close(writer)
        ready = select.select([reader], [], [], PATIENCE_S)[0]
        raw = os.read(reader, 65536) if ready else b""
        os.close(reader)
        if not raw:
            time.sleep(0)
            os.kill(child, signal.SIGKILL) if not ready else None
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answers[name] = json.loads(raw) if raw else {"outcome": "signal" if ready else "silent", "signal": -code}
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
