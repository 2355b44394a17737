"""The escape suite's native part: every attempt, the layer that must stop it, and a run in which it succeeds.

The attempts run in the profile of a real engine session. To show that a layer and not something else stops one, the
filter answers with a number of its own, and a control takes the layer away.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odf_engines.contract import Limits
from odf_engines.host.session import HostSession
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.profile import build_command
from odf_engines.sandbox.resources import kernel_limits
from odf_engines.sandbox.system_calls import open_filter
from odf_spark.runtime import find_runtime, spark_guest

PROGRAM = Path(__file__).with_name("escape_program.py")
BY_THE_FILTER = 133  # EHWPOISON, which no system call here answers by itself
SECRET = "hunter2-of-the-host"

_NONE, _DENIED, _READ_ONLY = errno.ENOENT, errno.EPERM, errno.EROFS


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt.

    Attributes:
        name: Of the attempt in the program.
        layer: What must stop it.
        proof: Errno that only this layer gives here, or the negative number of the signal that ends it.
        control: Run in which it succeeds; see ``Cage.run``.
        reaches: Without the layer it does not succeed but is judged by the kernel itself: success would change the
            machine, or needs rights that no test has.
        needs: File of the host without which there is nothing to attempt.
    """

    name: str
    layer: str
    proof: int
    control: str
    reaches: bool = False
    needs: str = ""


def _filtered() -> Iterable[Probe]:
    succeed = """
        ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd mount chroot open_tree fsopen unshare_user
        unshare_mounts clone_user clone_network name_to_handle_at userfaultfd perf_event_open io_uring_setup add_key
        keyctl fanotify_init modify_ldt landlock_create_ruleset memfd_secret sethostname setdomainname adjtimex
        personality move_pages pivot_root remount_root_writable memfd_create execute_from_memory shmget
        msgget semget mq_open shared_memory_without_name type_into_terminal
    """
    # Success would change the machine as a whole, or needs rights over it; that the kernel judges them is the control.
    reach = """
        process_madvise umount2 syslog mount_setattr move_mount fsconfig fsmount fspick swapon swapoff quotactl
        open_by_handle_at setns bpf io_uring_enter io_uring_register request_key vhangup acct init_module finit_module
        delete_module kexec_load kexec_file_load reboot iopl ioperm settimeofday clock_settime clock_adjtime
        migrate_pages paste_into_terminal type_into_terminal_with_high_bits
    """
    for name in succeed.split():
        yield Probe(name, "filter", BY_THE_FILTER, "filter")
    for name in reach.split():
        yield Probe(name, "filter", BY_THE_FILTER, "filter", reaches=True)
    yield Probe("clone3", "filter", errno.ENOSYS, "filter", reaches=True)
    for name in ("socket_families", "socket_inet6", "socket_netlink", "socket_packet", "socket_alg", "socket_vsock"):
        yield Probe(name, "filter", BY_THE_FILTER, "filter")
    yield Probe("call_of_32_bits", "filter", -31, "filter")
    yield Probe("call_of_x32", "filter", -31, "filter")


PROBES = (
    *_filtered(),
    Probe("raw_socket", "capabilities", _DENIED, "capabilities"),
    Probe("privileged_port", "capabilities", errno.EACCES, "capabilities"),
    Probe("mark_packets", "capabilities", _DENIED, "capabilities"),
    Probe("raise_capabilities", "capabilities", _DENIED, "capabilities"),
    Probe("make_block_device", "capabilities", _DENIED, "outside"),
    Probe("forbid_removal_of_output", "capabilities", _DENIED, "outside"),
    Probe("reach_host_port", "network namespace", errno.ECONNREFUSED, "network"),
    Probe("reach_abstract_socket", "network namespace", errno.ECONNREFUSED, "network"),
    Probe("see_network_interfaces", "network namespace", errno.ENODEV, "network"),
    Probe("reach_outside", "network namespace", errno.ENETUNREACH, "network"),
    Probe("reach_named_socket", "mounts", _NONE, "mounts"),
    Probe("read_host_file", "mounts", _NONE, "mounts"),
    Probe("read_host_file_through_root_of_process", "mounts", _NONE, "outside"),
    Probe("read_host_file_through_link", "mounts", _NONE, "mounts"),
    *(
        Probe(name, "mounts", _NONE, "mounts")
        for name in (
            "read_passwords", "list_home_of_root", "list_homes", "open_system_tree", "open_shared_memory_folder",
            "list_terminals", "open_kernel_log", "open_zero_device", "open_fuse", "open_tun", "open_loop_control",
            "open_shell",
        )
    ),
    *(
        Probe(name, "read-only mounts", _READ_ONLY, "mounts")
        for name in (
            "write_system_library", "write_engine_code", "write_python_library", "write_spark", "write_core_pattern",
            "write_hostname_setting", "write_overcommit", "make_file_in_root", "make_file_in_devices",
        )
    ),
    Probe("press_sysrq", "read-only mounts", _READ_ONLY, "mounts", needs="/proc/sysrq-trigger"),
    Probe("link_input_to_output", "read-only mounts", errno.EXDEV, "mounts"),
    *(
        Probe(name, "read-only mounts", _READ_ONLY, "mounts")
        for name in (
            "change_modes_of_input", "change_times_of_input", "overwrite_input", "truncate_input", "remove_input",
        )
    ),
    Probe("see_host_process", "process namespace", _NONE, "processes"),
    Probe("read_environment_of_host_process", "process namespace", _NONE, "outside"),
    Probe("signal_host_process", "process namespace", errno.ESRCH, "processes"),
    Probe("slow_host_process", "process namespace", errno.ESRCH, "outside"),
    Probe("limit_host_process", "process namespace", errno.ESRCH, "processes"),
    Probe("attach_host_shared_memory", "filter", BY_THE_FILTER, "ipc"),
    Probe("use_inherited_descriptor", "descriptors", errno.EBADF, "descriptors"),
    Probe("count_inherited_descriptors", "descriptors", errno.EBADF, "descriptors"),
    Probe("read_environment", "environment", _NONE, "environment"),
    Probe("read_environment_of_first_process", "environment", _NONE, "environment"),
    Probe("raise_limit_of_files", "kernel limits", _DENIED, "outside"),
    Probe("dump_core", "kernel limits", _DENIED, "limits"),
    Probe("lock_memory", "kernel limits", _DENIED, "limits"),
    Probe("open_many_files", "kernel limits", errno.EMFILE, "limits"),
    Probe("reserve_address_space", "kernel limits", errno.ENOMEM, "limits"),
    Probe("write_large_file", "kernel limits", errno.EFBIG, "limits"),
)  # fmt: skip


@dataclass
class Cage:
    """Runs attempts in the profile of an engine, or in it with one layer less.

    Attributes:
        folder: Of the test's own.
        facts: What the attempts aim at on the host.
    """

    folder: Path
    facts: Mapping[str, Any]
    _session: HostSession = field(init=False)

    def __post_init__(self) -> None:
        self._session = HostSession(spark_guest(find_runtime(), cores=1), self.folder, Limits())
        (self._session.folder / "in" / "program.py").write_bytes(PROGRAM.read_bytes())

    def run(self, names: Sequence[str], less: str = "") -> dict[str, dict[str, Any]]:
        """Run attempts and return the answer of each.

        Args:
            names: Of attempts.
            less: What is missing: ``filter`` (and capabilities are there, whose absence would stop the same),
                ``capabilities``, ``network``, ``processes``, ``mounts`` (what is read only can be written, and some of
                the host is there), ``ipc`` (and the filter), ``descriptors``, ``environment``, ``limits``; ``other
                layers``: every capability is there, so the filter is left alone; ``outside``: no sandbox at all;
                empty: nothing is missing.
        """
        (self._session.folder / "in" / "input").write_bytes(b"an input of the node")
        out = self._session.folder / "out"
        for path in out.iterdir():
            path.unlink()
        (out / "input").write_bytes(b"an input of the node")
        facts = {"input": "/exchange/in/input", "out": "/exchange/out", "mark": BY_THE_FILTER, "first": 1, **self.facts}
        if less == "mounts":
            facts["input"] = "/exchange/out/input"
        if less == "outside":
            facts |= {"out": str(out), "first": self.facts["victim"]}
        asked: dict[str, Any] = {"names": list(names), "facts": facts}
        if less not in ("filter", "limits", "outside"):
            asked["limits"] = kernel_limits(memory_bytes=2**31, cpu_s=60, file_bytes=2**32, processes=512)
        inherited = [int(self.facts["descriptor"])] if less == "descriptors" else []
        if less == "filter" and (terminal := self.facts.get("terminal")):
            inherited.append(int(terminal))
        elif "terminal" in facts:
            facts = asked["facts"] = {name: value for name, value in facts.items() if name != "terminal"}
        if less == "outside":
            return self._answers([sys.executable, "-I", "-S", "-B", str(PROGRAM), json.dumps(asked)], inherited, less)
        program = ["/runtime/python/bin/python3", "-I", "-S", "-B", "/exchange/in/program.py", json.dumps(asked)]
        descriptor = open_filter(BY_THE_FILTER)
        try:
            command = build_command(find_bubblewrap(), self._session.profile(), program, filter_descriptor=descriptor)
            return self._answers(self._without(command, less), [*inherited, descriptor], less)
        finally:
            os.close(descriptor)

    def _answers(self, command: list[str], inherited: list[int], less: str) -> dict[str, dict[str, Any]]:
        secrets = {"ODF_SECRET": SECRET} if less == "environment" else {}
        ended = subprocess.run(
            command, pass_fds=inherited, capture_output=True, text=True, timeout=400, check=False, env=secrets,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        answers: dict[str, dict[str, Any]] = json.loads(ended.stdout)
        return answers

    def _without(self, command: list[str], less: str) -> list[str]:
        end = command.index("--")
        words, program = command[:end], command[end:]
        if less in ("filter", "ipc"):
            _drop(words, "--seccomp", 1)
        if less in ("filter", "capabilities", "other layers"):
            words[words.index("--cap-drop")] = "--cap-add"
        if less in ("network", "processes", "ipc"):
            words.remove({"network": "--unshare-net", "processes": "--unshare-pid", "ipc": "--unshare-ipc"}[less])
        if less == "processes":
            words += ["--ro-bind", "/proc", "/proc"]
        if less == "environment":
            _drop(words, "--clearenv", 0)
        if less == "mounts":
            while "--remount-ro" in words:
                _drop(words, "--remount-ro", 1)
            words = ["--bind" if word == "--ro-bind" else word for word in words]
            bait = str(Path(self.facts["bait"]).parent)
            for path in (bait, "/root", "/home", "/sys"):
                words += ["--ro-bind-try", path, path]
            words += ["--ro-bind-try", "/etc/shadow", "/etc/shadow", "--ro-bind", "/bin/sh", "/usr/bin/sh"]
            words += ["--symlink", "usr/bin", "/bin", "--tmpfs", "/dev/shm"]
            for device in ("kmsg", "zero", "fuse", "net/tun", "loop-control", "pts"):
                words += ["--dev-bind-try", f"/dev/{device}", f"/dev/{device}"]
        return [*words, *program]


def _drop(words: list[str], word: str, arguments: int) -> None:
    at = words.index(word)
    del words[at : at + 1 + arguments]
