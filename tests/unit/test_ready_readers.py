"""Readers that are forked from a process that has loaded all: like those that start, but for the start."""

import subprocess
import sys
import textwrap
from pathlib import Path

from support.offers import root_chain

BEGINNING = """
import os, resource, signal, subprocess, sys
from dataclasses import replace
from pathlib import Path
from odf_node.handover.fork_server import load_commands
load_commands()
from odf_node.rows.ready_readers import end_readers, find_ready_reader, fork_readers
from odf_node.rows.slice_process import ReadingLimits, SliceProcess
from odf_protocol.block import decode_block
from odf_protocol.dataset_view import apply, start_view
from odf_protocol.errors import UnavailableError

good, bad = Path("good"), Path("bad")
blocks = [decode_block(path.read_bytes(), expected_hash=None) for path in sorted(Path("blocks").iterdir())]

def check(reader, path):
    view = start_view(blocks[0])
    for block in blocks[1:]:
        view = apply(view, block)
    reader.check(path, blocks[-1], view)

def start_nothing(*_, **__):
    raise AssertionError("a reader was started")

popen, subprocess.Popen = subprocess.Popen, start_nothing
"""
"""Loads as a fork server does, and ends with no way to start a process."""


def run(folder: Path, script: str) -> None:
    """Run a script in a process of its own: one with threads, such as this, must not fork."""
    chain = root_chain(folder, slices=1)
    [content] = chain.files.values()
    (folder / "good").write_bytes(content)
    (folder / "bad").write_bytes(content[:-1])
    (folder / "blocks").mkdir()
    for block in chain.blocks:
        (folder / "blocks" / str(block.sequence_number)).write_bytes(block.raw)
    ran = subprocess.run(
        [sys.executable, "-c", BEGINNING + textwrap.dedent(script)], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_ready_readers_judge_as_others_do(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        fork_readers(2, ReadingLimits().memory_bytes)
        with SliceProcess() as first, SliceProcess() as second:
            check(first, good)
            check(second, good)
            try:
                check(first, bad)
            except Exception as error:
                assert "Parquet" in str(error), error
            else:
                raise AssertionError("a cut file was read")
            check(first, good)
            os.kill(second._process.pid, signal.SIGKILL)
            try:
                check(second, good)
            except UnavailableError as error:
                assert "SIGKILL" in str(error)
            else:
                raise AssertionError("a dead reader answered")
        assert not Path("/proc/self/task", str(os.getpid()), "children").read_text()
        """,
    )


def test_ready_reader_has_its_limits_and_nothing_of_its_parent(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        held = open(good, "rb")
        os.set_inheritable(held.fileno(), True)
        fork_readers(1, 500 << 20)
        reader = find_ready_reader()
        reader.stdin.write(b'{"operation": "compare", "cpu_s": 7}\\n')  # answered, so it is set up
        reader.stdin.flush()
        assert reader.stdout.readline().startswith(b'{"error"')
        assert sorted(os.listdir(f"/proc/{reader.pid}/fd")) == ["0", "1", "2"]
        assert os.readlink(f"/proc/{reader.pid}/fd/2") == os.devnull
        assert os.getsid(reader.pid) == reader.pid
        limits = {name: resource.prlimit(reader.pid, getattr(resource, f"RLIMIT_{name}")) for name in
                  ("DATA", "FSIZE", "CORE", "CPU")}
        assert limits["DATA"] == (500 << 20, 500 << 20), limits
        assert limits["FSIZE"] == limits["CORE"] == (0, 0), limits
        assert 7 <= limits["CPU"][0] < 60, limits
        reader.communicate()
        assert reader.returncode == 0
        """,
    )


def test_readers_that_nobody_needed_are_ended(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        fork_readers(2, ReadingLimits().memory_bytes)
        end_readers()
        assert not Path("/proc/self/task", str(os.getpid()), "children").read_text()
        assert find_ready_reader() is None
        """,
    )


def test_reader_with_other_limits_or_in_the_place_of_a_dead_one_is_started(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        fork_readers(1, ReadingLimits().memory_bytes)
        [pid] = map(int, Path("/proc/self/task", str(os.getpid()), "children").read_text().split())
        subprocess.Popen = popen
        with SliceProcess(replace(ReadingLimits(), cpu_s=60)) as reader:
            check(reader, good)
            assert reader._process.pid != pid
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with SliceProcess() as reader:
            check(reader, good)
            assert reader._process.pid != pid
        """,
    )
