"""Clause ENGINE-20: what is compiled is used only with its very source, and made anew where sources changed."""

import marshal
from pathlib import Path

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError
from odf_engines.host.compiled import compiled_mounts, find_compiled, make_compiled, python_command
from odf_engines.sandbox.process import SandboxedProcess
from odf_engines.sandbox.profile import Profile
from odf_engines.spark.runtime import find_runtime

HEADER_BYTES = 16
MODULE = "runtime/ours/odf_protocol/varint.cpython-311.pyc"

SMALL = ("odf_protocol.varint",)


@pytest.fixture
def folder(tmp_path) -> Path:
    """What is compiled of one small module of ours and what it imports."""
    assert find_compiled(find_runtime(), tmp_path) is None
    made = make_compiled(find_runtime(), tmp_path, SMALL)
    assert find_compiled(find_runtime(), tmp_path) == made
    return made


def listed(folder: Path) -> str:
    """Import the module in a sandbox that is shown the folder; what it answers."""
    runtime = find_runtime()
    profile = Profile(mounts=(*runtime.mounts(), *compiled_mounts(folder)), links=runtime.links())
    program = [*python_command(folder, "odf_engines.host.module_list"), "odf_protocol.varint"]
    with SandboxedProcess(profile, program, Limits()) as process:
        return process.receive(60.0).decode()


def put_other_code(file: Path, *, header: bytes) -> None:
    file.write_bytes(header + marshal.dumps(compile("raise SystemExit('other code ran')", "other", "exec")))


def test_without_a_folder_python_starts_as_it_always_did(tmp_path):
    assert find_compiled(find_runtime(), tmp_path) is None
    assert compiled_mounts(None) == []
    command = python_command(None, "odf_engines.spark.worker")
    assert command[1:4] == ["-I", "-S", "-B"]
    assert not any("pycache_prefix" in each for each in command)
    assert len(python_command(tmp_path, "odf_engines.spark.worker")) == len(command) + 2


@pytest.mark.spark
def test_compiled_modules_run_in_the_sandbox_and_only_beside_their_source(folder):
    assert "/runtime/ours/odf_protocol/varint.py" in listed(folder)
    header = (folder / MODULE).read_bytes()[:HEADER_BYTES]
    put_other_code(folder / MODULE, header=header)
    with pytest.raises(EngineFailureError) as caught:
        listed(folder)
    assert "other code ran" in caught.value.log
    changed = header[:-1] + bytes([header[-1] ^ 1])
    put_other_code(folder / MODULE, header=changed)
    assert "/runtime/ours/odf_protocol/varint.py" in listed(folder)


@pytest.mark.spark
def test_folder_is_kept_while_it_fits_and_made_anew_where_sources_changed(folder, tmp_path):
    first = folder.stat().st_ino
    assert make_compiled(find_runtime(), tmp_path, SMALL) == folder
    assert folder.stat().st_ino == first
    whole = (folder / MODULE).read_bytes()
    (folder / MODULE).write_bytes(whole[: HEADER_BYTES - 1] + b"\xff" + whole[HEADER_BYTES:])
    assert make_compiled(find_runtime(), tmp_path, SMALL) == folder
    assert (folder / MODULE).read_bytes() == whole
    # A module that was added counts as one that changed.
    more = (*SMALL, "odf_protocol.multibase")
    assert make_compiled(find_runtime(), tmp_path, more) == folder
    assert (folder / MODULE).with_name("multibase.cpython-311.pyc").is_file()
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []
