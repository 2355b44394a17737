"""Clauses SANDBOX-3 to SANDBOX-7: a compromised engine's attempts, the layer that stops each, and the way without it.

All attempts run in one sandbox, the controls in one each. A control that this host does not allow is skipped with the
reason, never passed.
"""

import ctypes
import errno
import os
import platform
import socket
import subprocess
from functools import cache
from pathlib import Path

import pytest

from support.escapes import BY_THE_FILTER, PROBES, SECRET, Cage

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls are those of x86-64")

SHARED_MEMORY_KEY = 0x0DF00000 | os.getpid() & 0xFFFF


@pytest.fixture(scope="module")
def run(host_folder):
    """Things on the host worth reaching, and a cage to run attempts in; what ran once is remembered."""
    folder = host_folder
    bait = folder / "bait"
    bait.mkdir()
    (bait / "file").write_text("bait")
    libc = ctypes.CDLL(None)
    segment = libc.shmget(SHARED_MEMORY_KEY, 4096, 0o1600)
    master, terminal = os.openpty()
    descriptor = os.open(bait / "file", os.O_RDONLY)
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
        subprocess.Popen(["sleep", "3600"], env={"ODF_SECRET": SECRET}) as victim,
    ):
        try:
            abstract.bind(f"\0odf-escape-{os.getpid()}")
            named.bind(os.path.relpath(bait / "socket"))
            for each in (abstract, named):
                each.listen()
            facts = {
                "abstract": f"odf-escape-{os.getpid()}",
                "bait": str(bait / "file"),
                "bait_socket": str(bait / "socket"),
                "descriptor": descriptor,
                "port": port.getsockname()[1],
                "secret": SECRET,
                "shared_memory_key": SHARED_MEMORY_KEY,
                "terminal": terminal,
                "victim": victim.pid,
            }
            cage = Cage(folder, facts)

            @cache
            def run_all(less=""):
                wanted = [
                    probe.name
                    for probe in PROBES
                    if less in ("", probe.control) or (less == "other layers" and probe.layer == "filter")
                ]
                return cage.run(wanted, less)

            yield run_all
        finally:
            victim.kill()
            libc.shmctl(segment, 0, None)
            for each in (master, terminal, descriptor):
                os.close(each)


def by_name(probes):
    return [pytest.param(probe, id=probe.name) for probe in probes]


def skip_without(probe):
    if probe.needs and not Path(probe.needs).exists():
        pytest.skip(f"this host has no {probe.needs}, so there is nothing to attempt")


def proof_in(answer):
    """The errno, or the negative number of the signal."""
    return answer.get("errno", -answer.get("signal", 0))


@pytest.mark.parametrize("probe", by_name(PROBES))
def test_attempt_is_stopped_by_the_layer_that_has_to(run, probe):
    skip_without(probe)
    answer = run()[probe.name]
    assert answer["outcome"] in ("errno", "signal"), answer
    if probe.proof == errno.EROFS and answer.get("errno") == errno.EACCES and os.getuid() != 0:
        pytest.skip("the file belongs to root, so that this user could not write to it without a sandbox either")
    assert proof_in(answer) == probe.proof, answer


@pytest.mark.parametrize("probe", by_name(probe for probe in PROBES if probe.layer == "filter"))
def test_filter_stops_it_also_where_every_capability_is_there(run, probe):
    assert proof_in(run("other layers")[probe.name]) == probe.proof


@pytest.mark.parametrize("probe", by_name(PROBES))
def test_attempt_succeeds_without_the_layer(run, probe):
    skip_without(probe)
    answer = run(probe.control)[probe.name]
    assert answer["outcome"] != "broken", answer
    if answer["outcome"] == "done":
        return
    assert proof_in(answer) != BY_THE_FILTER
    if not probe.reaches:
        pytest.skip(f"the control cannot be run on this host: it answers {os.strerror(answer['errno'])}")
    assert proof_in(answer) != probe.proof


def test_names_are_unique():
    names = [probe.name for probe in PROBES]
    assert len(set(names)) == len(names)
