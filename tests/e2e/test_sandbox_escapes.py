"""Clauses SANDBOX-3 to SANDBOX-7: what code inside a sandbox cannot see and cannot do.

Where it is possible a control shows that the same code succeeds without the layer that the test is about.
"""

import os
import socket
import threading
import time

import pytest

from support.sandboxes import run_inside, run_outside, small_profile

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({number}, {arguments})
print("denied" if result < 0 and ctypes.get_errno() == {error} else f"result {{result}} errno {{ctypes.get_errno()}}")
"""
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97


@pytest.fixture
def profile(tmp_path):
    return small_profile(tmp_path)


def call(number, arguments="0, 0, 0, 0, 0, 0", error=EPERM):
    return CALL.format(number=number, arguments=arguments, error=error)


def test_nothing_of_the_host_is_there_but_the_runtime(profile):
    code = """
import os
print(sorted(os.listdir("/")), sorted(os.listdir("/etc")), sorted(os.listdir("/dev")), sorted(os.listdir("/usr")))
print(os.path.exists("/root"), os.path.exists("/home"), os.path.exists("/etc/shadow"), os.path.exists("/sys"))
print(sorted(name for name in os.environ if name != "LC_CTYPE"), os.getuid(), os.getgid(), os.uname().nodename)
"""
    lines = run_inside(profile, code).stdout.splitlines()
    assert "'root'" not in lines[0]
    assert "'group', 'hosts', 'ld.so.cache', 'nsswitch.conf', 'passwd'" in lines[0]
    assert "['full', 'null', 'random', 'urandom', 'zero']" in lines[0]
    assert lines[1] == "False False False False"
    assert lines[2] == "['HOME', 'LD_LIBRARY_PATH', 'PWD'] 65534 65534 sandbox"


def test_secrets_of_the_nodes_environment_do_not_cross(profile, monkeypatch):
    monkeypatch.setenv("ODF_SECRET", "hunter2")
    code = "import os; print('hunter2' in str(os.environ), 'hunter2' in open('/proc/1/environ').read())"
    assert run_inside(profile, code, environment=os.environ).stdout.strip() == "False True"
    assert run_inside(profile, code).stdout.strip() == "False False"


def test_other_processes_are_not_visible(profile):
    code = "import os; print(len([name for name in os.listdir('/proc') if name.isdigit()]))"
    assert int(run_outside(code).stdout) > 3
    assert int(run_inside(profile, code).stdout) <= 2


@pytest.mark.parametrize(
    "path", ["/x", "/etc/passwd", "/dev/x", "/dev/shm/x", "/runtime/ours/x", "/usr/lib/x", "/proc/x"]
)
def test_only_scratch_is_writable(profile, path):
    assert "Error" in run_inside(profile, f"open({path!r}, 'w').write('x')").stderr
    assert run_inside(profile, "open('/scratch/x', 'w').write('x')").returncode == 0


@pytest.mark.parametrize("name", ["kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory"])
def test_settings_of_the_machine_cannot_be_written(profile, name):
    code = f"open('/proc/sys/{name}', 'a').close(); print('opened')"
    assert "Error" in run_inside(profile, code).stderr
    if os.getuid() == 0:
        assert run_inside(profile, code, without=["--remount-ro /proc"]).stdout.strip() == "opened"


def test_host_is_not_reachable_over_the_network(profile):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('connected')"
        acceptor = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
        acceptor.start()
        assert run_outside(code).stdout.strip() == "connected"
        acceptor.join()
        assert "ConnectionRefusedError" in run_inside(profile, code).stderr


def test_outside_is_not_reachable_over_the_network(profile):
    code = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    assert "Network is unreachable" in run_inside(profile, code).stderr


def test_abstract_sockets_of_the_host_are_not_reachable(profile):
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0odf-test-{time.monotonic_ns()}"
        server.bind(name)
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r}); print('connected')"
        assert run_outside(code).stdout.strip() == "connected"
        assert "ConnectionRefusedError" in run_inside(profile, code).stderr


def test_loopback_inside_works(profile):
    code = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 2)
print("connected")
"""
    assert run_inside(profile, code).stdout.strip() == "connected"


@pytest.mark.parametrize(
    ("family", "kind"),
    [(10, 1), (16, 3), (17, 3), (38, 5), (40, 1)],
    ids=["inet6", "netlink", "packet", "alg", "vsock"],
)
def test_other_families_of_sockets_are_denied(profile, family, kind):
    code = f"import socket; socket.socket({family}, {kind})"
    assert "Errno 97" in run_inside(profile, code).stderr


def test_families_are_denied_by_the_filter(profile):
    code = "import socket; socket.socket(16, 3); print('made')"
    assert run_inside(profile, code, without=["--seccomp"]).stdout.strip() == "made"


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(101, id="ptrace"),
        pytest.param(165, id="mount"),
        pytest.param(155, id="pivot_root"),
        pytest.param(161, id="chroot"),
        pytest.param(272, id="unshare"),
        pytest.param(308, id="setns"),
        pytest.param(321, id="bpf"),
        pytest.param(323, id="userfaultfd"),
        pytest.param(298, id="perf_event_open"),
        pytest.param(425, id="io_uring_setup"),
        pytest.param(248, id="add_key"),
        pytest.param(250, id="keyctl"),
        pytest.param(246, id="kexec_load"),
        pytest.param(313, id="finit_module"),
        pytest.param(304, id="open_by_handle_at"),
        pytest.param(310, id="process_vm_readv"),
        pytest.param(135, id="personality"),
    ],
)
@pytest.mark.skipif("__import__('platform').machine() != 'x86_64'", reason="numbers of x86-64")
def test_dangerous_system_calls_are_denied(profile, number):
    assert run_inside(profile, call(number)).stdout.strip() == "denied"


@pytest.mark.skipif("__import__('platform').machine() != 'x86_64'", reason="numbers of x86-64")
@pytest.mark.parametrize("flag", [0x10000000, 0x00020000, 0x20000000, 0x40000000], ids=["user", "mount", "pid", "net"])
def test_new_namespaces_are_denied_by_the_filter(profile, flag):
    assert run_inside(profile, call(56, f"{flag} | 17, 0, 0, 0, 0")).stdout.strip() == "denied"
    assert run_inside(profile, call(435, "0, 0", ENOSYS)).stdout.strip() == "denied"


@pytest.mark.skipif("__import__('platform').machine() != 'x86_64'", reason="numbers of x86-64")
def test_new_user_namespace_would_work_without_the_filter(profile):
    assert run_inside(profile, call(272, "0x10000000"), without=["--seccomp"]).stdout.strip() == "result 0 errno 0"


def test_there_are_no_capabilities_and_none_to_gain(profile):
    code = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNewPrivs'))])"
    assert run_inside(profile, code).stdout.strip() == str(["0" * 16] * 5 + ["1"])


def test_memory_folders_are_limited(profile):
    code = "open('/scratch/x', 'wb').write(bytes(64 * 1024 * 1024))"
    assert "No space left" in run_inside(profile, code).stderr
    assert run_inside(profile, code, without=["--size 8388608", "--size 8388608"]).returncode == 0


def test_terminal_of_the_node_is_out_of_reach(profile):
    code = "import os; print(os.getsid(0) != os.getppid(), os.path.exists('/dev/tty'))"
    assert run_inside(profile, code).stdout.split()[1] == "False"
    code = "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"
    assert "PermissionError" in run_inside(profile, code).stderr
