"""Clauses ROWS-6 and SANDBOX-17: what a slice can do that has taken over its reader, tried by a program in its place.

The control is the same program in the reader's place without a sandbox, with the kernel's limits alone.
"""

import errno
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_engines.host import reader_process
from odf_engines.host.reader_limits import ReadingLimits
from odf_engines.host.reader_process import ReaderProcess
from odf_engines.sandbox.layers import Layer
from odf_engines.sandbox.profile import Mount, Profile
from support import reader_probe

PROBE = "reader_probe"
LIMITS = ReadingLimits(memory_bytes=512 * 1024**2, cpu_s=60)
GONE, DENIED = errno.ENOENT, errno.EPERM
STOPPED_WITH = {
    "read_key": GONE,
    "list_home": GONE,
    "read_other_object": GONE,
    "read_file_of_another_user": GONE,
    "list_home_of_user": GONE,
    "reach_port": errno.ECONNREFUSED,
    "reach_abstract_socket": errno.ECONNREFUSED,
    "send_packet_outside": errno.ENETUNREACH,
    "signal_process": errno.ESRCH,
    "read_environment_of_process": GONE,
    "trace_process": DENIED,
    "write_beside_the_file": GONE,
    "remove_other_object": GONE,
    "write_temporary_file": GONE,
    "start_shell": GONE,
    "read_token": GONE,
    "open_handed_file_for_writing": GONE,
    "change_mode_of_handed_file": DENIED,
    "change_times_of_handed_file": DENIED,
    "change_attributes_of_handed_file": DENIED,
    "lock_handed_file": DENIED,
}
BY_THE_DESCRIPTOR = {
    "write_to_handed_file": errno.EBADF,
    "cut_handed_file": errno.EINVAL,
    "map_handed_file_for_writing": errno.EACCES,
}
"""Rejected by the kernel in any case, as the file is handed over open for reading."""


@pytest.fixture(scope="module")
def facts(host_folder: Path) -> Iterator[dict[str, Any]]:
    """A home, programs and servers of this user that are worth reaching."""
    home = host_folder / "home"
    for folder in ("keys", "objects/ab"):
        (home / folder).mkdir(parents=True)
    for name in ("keys/node.pem", "objects/ab/slice", "objects/ab/other", "objects/ab/bait"):
        (home / name).write_text("content")
    name = f"odf-reader-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen(["sleep", "3600"], env={"SECRET": "hunter2"}) as victim,
    ):
        abstract.bind(f"\0{name}")
        abstract.listen()
        objects = home / "objects" / "ab"
        yield {
            "home": str(home),
            "key": str(home / "keys" / "node.pem"),
            "slice": str(objects / "slice"),
            "other": str(objects / "other"),
            "bait": str(objects / "bait"),
            "new": str(objects / "new"),
            "user_home": str(Path.home()),
            "port": port.getsockname()[1],
            "abstract": name,
            "victim": victim.pid,
        }
        victim.kill()


def run_probe(facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Ask the product's reader, of which nothing but the name of its program is another."""
    probe = Path(reader_probe.__file__)
    made = reader_process.profile_of_reader

    def with_probe(*packages: Any, **options: Any) -> Profile:
        profile = made(*packages, **options)
        mounts = (*profile.mounts, Mount(probe, f"/runtime/plug-ins/{PROBE}.py"))
        environment = {**profile.environment, "PYTHONPATH": str(probe.parent)}  # the sandbox does without
        return replace(profile, mounts=mounts, environment=environment)

    monkeypatch.setattr(reader_process, "PROGRAM", PROBE)
    monkeypatch.setattr(reader_process, "profile_of_reader", with_probe)
    reader = ReaderProcess(LIMITS, PROBE)
    try:
        found: dict[str, int] = reader.ask("any", {"facts": facts}, [Path(facts["slice"])], lambda found, _: found)
        return found
    finally:
        reader.close()


def test_reader_that_a_slice_took_over_reaches_nothing(facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_TOKEN", "odf_token")
    found = run_probe(facts, monkeypatch)
    assert found.pop("descriptors beside") == 0
    assert found == STOPPED_WITH | BY_THE_DESCRIPTOR
    assert Path(facts["bait"]).exists()


def test_without_the_sandbox_it_reaches_everything(facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "missing_layers", lambda _accepted: frozenset(Layer))
    found = run_probe(facts, monkeypatch)
    # The environment is made anew in any case; a file system may have no attributes of users.
    left = {"descriptors beside", "read_token", "change_attributes_of_handed_file", "send_packet_outside"}
    assert {name: found[name] for name in STOPPED_WITH if name not in left} == {
        name: 0 for name in STOPPED_WITH if name not in left
    }


def test_every_attempt_has_what_stops_it() -> None:
    assert set(STOPPED_WITH | BY_THE_DESCRIPTOR) == set(reader_probe.ATTEMPTS)
