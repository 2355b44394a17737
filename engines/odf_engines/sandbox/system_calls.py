"""The filter of system calls that every sandboxed process runs under.

It is a list of what is denied: the Java runtime uses too much of the kernel for a list of what is allowed to survive
its updates. What is on it is what turns a bug in the kernel into an escape, or what no query needs.

Source: clause SANDBOX-6 in ``spec/extensions/sandbox.md``; names as in the manual pages, section 2.
"""

import base64
import errno
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox.boot_notes import find_result, keep_result

# Denied with "operation not permitted".
DENIED = (
    # looking into or steering other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    # mounts and roots
    "mount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig",
    "fsmount", "fspick", "swapon", "swapoff", "quotactl", "quotactl_fd", "name_to_handle_at", "open_by_handle_at",
    # namespaces; clone with their flags is denied below
    "unshare", "setns",
    # parts of the kernel with a long record of bugs
    "bpf", "userfaultfd", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "add_key", "request_key", "keyctl", "fanotify_init", "lookup_dcookie", "modify_ldt", "vhangup", "acct",
    "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "memfd_secret", "nfsservctl",
    # the machine as a whole
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "syslog", "sethostname",
    "setdomainname", "iopl", "ioperm", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "personality",
    # memory placement across processes
    "move_pages", "migrate_pages",
    # memory that outlives its pages in every process, which no count of resident memory sees; files without a path
    "memfd_create", "shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop",
    "semtimedop", "semctl", "mq_open",
)  # fmt: skip

# Denied too where a program holds open files of the host: these change a file, or who may, through a descriptor that
# is open for reading, if the user is its owner. What needs one open for writing the kernel rejects by itself.
DENIED_WITH_FILES = (
    "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "utimensat", "futimesat", "fsetxattr", "fremovexattr",
    "flock", "linkat", "sendmsg", "sendmmsg",
)  # fmt: skip
# Attributes such as "immutable", by either call; Source: ioctl_iflags(2), FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR
_CHANGES_ATTRIBUTES = (0x40086602, 0x401C5820)

_NAMESPACE_FLAGS = (
    0x00000080,  # CLONE_NEWTIME
    0x00020000,  # CLONE_NEWNS
    0x02000000,  # CLONE_NEWCGROUP
    0x04000000,  # CLONE_NEWUTS
    0x08000000,  # CLONE_NEWIPC
    0x10000000,  # CLONE_NEWUSER
    0x20000000,  # CLONE_NEWPID
    0x40000000,  # CLONE_NEWNET
)

# Local sockets, and IPv4 for the loopback between worker and Java; the sandbox has no other interface.
_ALLOWED_FAMILIES = (1, 2)
# Where it shares the network of the machine, local sockets without a file would lead to programs outside.
_ALLOWED_ON_NETWORK = (2,)
_FAMILY_LIMIT = 64  # AF_MAX is 46 in Linux 6; families are small numbers

# Both push characters into the terminal that started the node.
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C

# MAP_SHARED (and MAP_SHARED_VALIDATE, which contains it) together with MAP_ANONYMOUS: such pages stay when a process
# gives up its view of them, so they could be filled piece by piece without ever being resident.
_SHARED_ANONYMOUS = 0x01 | 0x20


RULES: Final = Path(__file__)
"""The file that says what is denied."""


@cache
def filter_program(mark: int | None = None, *, shares_network: bool = False, holds_files: bool = False) -> bytes:
    """Return the filter, compiled for this machine's processor, as bubblewrap reads it.

    Args:
        mark: What every denied call answers instead of the usual error, to tell the filter's answers from others.
        shares_network: Whether the sandbox has the network of this machine.
        holds_files: See ``Profile``.

    Raises:
        SandboxUnavailableError: The library libseccomp is missing.
    """
    # Python finds the library by starting ldconfig, twice.
    name = f"filter compiled, mark={mark} network={shares_network} files={holds_files}"
    if (found := find_result(name, RULES)) is not None:
        return base64.b64decode(found)
    compiled = _compile(mark, shares_network=shares_network, holds_files=holds_files)
    keep_result(name, base64.b64encode(compiled).decode(), RULES)
    return compiled


def _compile(mark: int | None, *, shares_network: bool, holds_files: bool) -> bytes:
    try:
        import pyseccomp  # here: it fails where the machine lacks libseccomp, which only a filter needs
    except (ImportError, RuntimeError, OSError) as error:
        raise SandboxUnavailableError(f"libseccomp cannot be loaded ({error}); install libseccomp2") from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    denied = pyseccomp.ERRNO(mark or errno.EPERM)
    for name in (*DENIED, *(DENIED_WITH_FILES if holds_files else ())):
        _deny(rules, denied, name)
    for flag in _NAMESPACE_FLAGS:
        rules.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    # Its flags lie in memory, where a filter cannot look; without it libc falls back to clone.
    _deny(rules, pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    for request in (_TIOCSTI, _TIOCLINUX, *(_CHANGES_ATTRIBUTES if holds_files else ())):
        rules.add_rule(denied, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, request))
    rules.add_rule(denied, "mmap", pyseccomp.Arg(3, pyseccomp.MASKED_EQ, _SHARED_ANONYMOUS, _SHARED_ANONYMOUS))
    rejected_family = pyseccomp.ERRNO(mark or errno.EAFNOSUPPORT)
    for family in range(_FAMILY_LIMIT):
        if family not in (_ALLOWED_ON_NETWORK if shares_network else _ALLOWED_FAMILIES):
            rules.add_rule(rejected_family, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family))
    rules.add_rule(rejected_family, "socket", pyseccomp.Arg(0, pyseccomp.GE, _FAMILY_LIMIT))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def open_filter(mark: int | None = None, *, shares_network: bool = False, holds_files: bool = False) -> int:
    """Return a descriptor from which bubblewrap reads ``filter_program``; the caller closes it."""
    descriptor = os.memfd_create("filter")
    os.write(descriptor, filter_program(mark, shares_network=shares_network, holds_files=holds_files))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _deny(rules: Any, action: int, name: str) -> None:
    try:
        rules.add_rule(action, name)
    except OSError as error:
        # A call that this processor or this libseccomp does not know cannot be made under a filter that kills
        # foreign architectures, or has no number to deny.
        if error.errno not in (errno.EINVAL, errno.EDOM, errno.EFAULT):
            raise
