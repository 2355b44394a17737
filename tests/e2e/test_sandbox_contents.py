"""Clauses SANDBOX-3 to SANDBOX-5: what is in a sandbox, and that it works; attempts to get out are in tests/escape."""

import pytest

from support.sandboxes import run_inside, small_profile


@pytest.fixture
def profile(tmp_path):
    return small_profile(tmp_path)


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
    assert "['full', 'null', 'random', 'urandom']" in lines[0]
    assert lines[1] == "False False False False"
    assert lines[2] == "['HOME', 'LD_LIBRARY_PATH', 'PWD'] 65534 65534 sandbox"


@pytest.mark.parametrize(
    "path", ["/x", "/etc/passwd", "/dev/x", "/dev/shm/x", "/runtime/ours/x", "/usr/lib/x", "/proc/x"]
)
def test_only_scratch_is_writable(profile, path):
    assert "Error" in run_inside(profile, f"open({path!r}, 'w').write('x')").stderr
    assert run_inside(profile, "open('/scratch/x', 'w').write('x')").returncode == 0


def test_loopback_inside_works(profile):
    code = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 2)
print("connected")
"""
    assert run_inside(profile, code).stdout.strip() == "connected"


def test_there_are_no_capabilities_and_none_to_gain(profile):
    code = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNewPrivs'))])"
    assert run_inside(profile, code).stdout.strip() == str(["0" * 16] * 5 + ["1"])


def test_memory_folders_are_limited(profile):
    code = "open('/scratch/x', 'wb').write(bytes(64 * 1024 * 1024))"
    assert "No space left" in run_inside(profile, code).stderr
    assert run_inside(profile, code, without=["--size 8388608", "--size 8388608"]).returncode == 0
