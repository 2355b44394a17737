"""Python in the sandbox: modules that were compiled beforehand are taken, and only beside their source."""

import importlib.util
import marshal
import os
from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError
from odf_engines.host.runtime import Runtime, compile_packages, find_runtime, python_command
from odf_engines.sandbox.profile import Profile
from support.sandboxes import receive_line

HEADER_BYTES = 16


@pytest.fixture
def runtime(tmp_path) -> Runtime:
    """One that has two small modules of ours, and one of somebody else's that cannot be compiled."""
    ours, others = tmp_path / "odf_small", tmp_path / "others"
    for folder in (ours, others):
        folder.mkdir()
    (ours / "program.py").write_text("import sys\nsys.path.insert(0, '/runtime/ours')\nimport odf_small.said\n")
    (ours / "said.py").write_text("print('from the source')\n")
    (others / "python2.py").write_text("print 'old'\n")
    return replace(find_runtime(()), ours=(("odf_small", ours),), packages=(("others", others),))


def compiled_of(runtime: Runtime) -> Path:
    return Path(importlib.util.cache_from_source(str(dict(runtime.ours)["odf_small"] / "said.py")))


def run(runtime: Runtime) -> str:
    # Where engines have their Python's own library.
    environment = {"LD_LIBRARY_PATH": "/runtime/python/lib"}
    profile = Profile(mounts=runtime.mounts(), links=runtime.links(), environment=environment)
    with SandboxedProcess(profile, python_command("odf_small.program"), Limits()) as process:
        return receive_line(process, 60.0).decode().strip()


def put_other_code(file: Path, *, header: bytes) -> None:
    file.write_bytes(header + marshal.dumps(compile("raise SystemExit('other code ran')", "other", "exec")))


def test_packages_are_compiled_once_and_anew_where_a_source_changed(runtime, tmp_path):
    compile_packages(runtime)
    compiled = compiled_of(runtime)
    first, made = compiled.read_bytes(), compiled.stat().st_ino
    compile_packages(runtime)
    assert compiled.stat().st_ino == made
    source = tmp_path / "odf_small" / "said.py"
    source.write_text("print('from another source')\n")
    os.utime(source, (1, 1))
    compile_packages(runtime)
    assert compiled.read_bytes() != first
    assert not list((tmp_path / "others").rglob("*.pyc"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_folder_that_cannot_be_written_is_left_as_it_is(runtime, tmp_path):
    (tmp_path / "odf_small").chmod(0o500)
    compile_packages(runtime)
    assert not compiled_of(runtime).exists()


@pytest.mark.spark
def test_compiled_modules_run_in_the_sandbox_and_only_beside_their_source(runtime):
    assert run(runtime) == "from the source"
    compile_packages(runtime)
    assert run(runtime) == "from the source"
    header = compiled_of(runtime).read_bytes()[:HEADER_BYTES]
    put_other_code(compiled_of(runtime), header=header)
    with pytest.raises(EngineFailureError) as caught:
        run(runtime)
    assert "other code ran" in caught.value.log
    put_other_code(compiled_of(runtime), header=header[:-1] + bytes([header[-1] ^ 1]))
    assert run(runtime) == "from the source"
