"""Clauses SANDBOX-1, SANDBOX-13 and SANDBOX-16: a missing layer is found, named, and rejected or accepted."""

import os
import subprocess
import sys

import pytest

from odf_engines.confined.caller import CallerConfinedProcess
from odf_engines.contract import Limits
from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox import bubblewrap, layers, system_calls
from odf_engines.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from odf_engines.sandbox.layers import WITHOUT_VARIABLE, Layer, accepted_layers, examine_layers, missing_layers
from odf_engines.sandbox.profile import Profile, build_command
from odf_engines.sandbox.system_calls import open_filter
from odf_node.machine import examine_machine
from odf_spark.engine import SparkEngine

CACHES = (find_bubblewrap, layers.try_filter, system_calls.filter_program)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Nothing is remembered from before, and nothing afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for each in CACHES:
        each.cache_clear()
    yield
    for each in CACHES:
        each.cache_clear()


@pytest.fixture
def no_filter(fresh, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyseccomp", None)


@pytest.fixture
def no_cgroup_namespace(fresh, monkeypatch, tmp_path):
    """The real program, on a kernel that makes no cgroup namespaces."""
    real = find_bubblewrap()
    program = tmp_path / "bwrap"
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" --unshare-cgroup "*) echo "no cgroup namespace" >&2; exit 1;; esac\n'
        f'exec {real.path} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_candidates", lambda: [("system", program)])
    find_bubblewrap.cache_clear()


def in_nested_sandbox(code, **environment):
    """Run Python where the kernel really forbids further user namespaces."""
    outer = [str(find_bubblewrap().path), "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"]
    return subprocess.run(
        [*outer, sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_container_that_forbids_the_name_of_a_host_lacks_the_layer():
    # As the filters of container tools do, which allow namespaces. Source: seccomp.json of containers-common.
    code = """
import pyseccomp
filter = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
filter.add_rule(pyseccomp.ERRNO(1), "sethostname")
filter.load()
from odf_node.machine import examine_machine
from pathlib import Path
(found,) = [each for each in examine_machine(Path("/nowhere")) if each.what == "sandbox: namespaces"]
print(found.ok, found.found, found.fix)
"""
    reported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    ).stdout
    assert reported.startswith("False")
    assert "Can't set hostname" in reported
    assert "--security-opt seccomp=unconfined" in reported


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """An engine that has looked at its files once for all tests here."""
    return SparkEngine(tmp_path_factory.mktemp("cache"))


def test_this_machine_has_every_layer():
    assert [str(finding.layer) for finding in examine_layers() if not finding.is_there] == []
    assert missing_layers(frozenset()) == frozenset()


def test_host_without_user_namespaces_lacks_the_layer_and_starts_no_engine(tmp_path):
    code = f"""
from pathlib import Path
from odf_engines.contract import Limits
from odf_spark.engine import SparkEngine
SparkEngine().open(Path({str(tmp_path)!r}), Limits())
"""
    ended = in_nested_sandbox(code)
    assert ended.returncode != 0
    assert "SandboxUnavailableError" in ended.stderr
    assert "namespaces: " in ended.stderr
    assert f"{WITHOUT_VARIABLE}=namespaces" in ended.stderr


def test_doctor_tells_of_a_host_without_user_namespaces():
    code = "import runpy, sys; sys.argv[1:] = ['doctor']; runpy.run_module('odf_node', run_name='__main__')"
    ended = in_nested_sandbox(code)
    assert ended.returncode == 1
    assert "MISSING  sandbox: namespaces" in ended.stdout
    assert "no engine starts" in ended.stdout


def test_missing_filter_rejects_and_says_how_to_do_without(no_filter, tmp_path):
    with pytest.raises(SandboxUnavailableError) as caught:
        SparkEngine(tmp_path / "cache").open(tmp_path, Limits())
    assert "libseccomp2" in caught.value.reason
    assert f"{WITHOUT_VARIABLE}=system-call-filter" in caught.value.reason


def test_operator_can_do_without_the_filter(engine, no_filter, tmp_path, monkeypatch):
    monkeypatch.setenv(WITHOUT_VARIABLE, "system-call-filter")
    with engine.open(tmp_path, Limits()) as session:
        assert not session.profile().has_filter
        command = build_command(find_bubblewrap(), session.profile(), ["/x"], filter_descriptor=None)
    assert "--seccomp" not in command
    assert "--unshare-net" in command


def test_layer_that_is_there_is_used_also_if_the_operator_could_do_without(engine, tmp_path, monkeypatch):
    monkeypatch.setenv(WITHOUT_VARIABLE, ",".join(Layer))
    with engine.open(tmp_path, Limits()) as session:
        assert session.profile().has_filter
        assert session._process_type is not CallerConfinedProcess


def test_one_accepted_layer_does_not_stand_for_another(no_filter, tmp_path, monkeypatch):
    monkeypatch.setenv(WITHOUT_VARIABLE, "cgroup-namespace")
    with pytest.raises(SandboxUnavailableError, match="system-call-filter"):
        SparkEngine(tmp_path / "cache").open(tmp_path, Limits())


def test_missing_namespaces_that_are_accepted_leave_it_to_what_confines_the_node(engine, fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(bubblewrap, "_candidates", list)
    monkeypatch.setenv(WITHOUT_VARIABLE, "namespaces,cgroup-namespace")
    with engine.open(tmp_path, Limits()) as session:
        assert session._process_type is CallerConfinedProcess


def test_missing_cgroup_namespace_is_noticed(no_cgroup_namespace, tmp_path):
    assert not find_bubblewrap().has_cgroup_namespace
    with pytest.raises(SandboxUnavailableError, match=f"{WITHOUT_VARIABLE}=cgroup-namespace"):
        missing_layers(frozenset())
    assert missing_layers({Layer.CGROUP_NAMESPACE}) == {Layer.CGROUP_NAMESPACE}


def test_sandbox_without_cgroup_namespace_has_all_the_others(no_cgroup_namespace):
    descriptor = open_filter()
    command = build_command(find_bubblewrap(), Profile(mounts=()), ["/x"], filter_descriptor=descriptor)
    os.close(descriptor)
    assert "--unshare-cgroup" not in command
    assert {"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"} < set(command)


def test_kernel_that_takes_no_filter_is_noticed(fresh, monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'Seccomp:\t0'\n")
    program.chmod(0o755)
    monkeypatch.setattr(layers, "find_bubblewrap", lambda: Bubblewrap(program, "system", "0.8.0"))
    assert [finding.layer for finding in examine_layers() if not finding.is_there] == [Layer.FILTER]


def test_layer_that_could_not_be_tried_for_a_moment_is_tried_again(fresh, monkeypatch, tmp_path):
    program, was_asked = tmp_path / "bwrap", tmp_path / "asked"
    program.write_text(
        f"#!/bin/sh\n[ -e {was_asked} ] || {{ echo >{was_asked}; exec sleep 600; }}\necho 'Seccomp:\t2'\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(layers, "find_bubblewrap", lambda: Bubblewrap(program, "system", "0.8.0"))
    with monkeypatch.context() as hurried:
        hurried.setattr(layers, "_PROBE_TIMEOUT_S", 0.0)
        assert [finding.layer for finding in examine_layers() if not finding.is_there] == [Layer.FILTER]
    was_asked.touch()  # it may have been ended before
    assert all(finding.is_there for finding in examine_layers())


@pytest.mark.parametrize("text", ["nonsense", "namespaces,nonsense", "all"])
def test_name_that_is_no_layer_is_an_error(text):
    with pytest.raises(SandboxUnavailableError, match="there are namespaces, cgroup-namespace, system-call-filter"):
        accepted_layers({WITHOUT_VARIABLE: text})


def test_names_are_separated_by_commas():
    assert accepted_layers({}) == frozenset()
    assert accepted_layers({WITHOUT_VARIABLE: " watch, system-call-filter,"}) == {Layer.WATCH, Layer.FILTER}


def test_doctor_shows_every_layer_and_what_is_done_without(no_filter, monkeypatch, tmp_path):
    found = {finding.what: finding for finding in examine_machine(tmp_path)}
    assert {f"sandbox: {layer}" for layer in Layer} < set(found)
    assert not found["sandbox: system-call-filter"].ok
    assert WITHOUT_VARIABLE in found["sandbox: system-call-filter"].fix
    monkeypatch.setenv(WITHOUT_VARIABLE, "system-call-filter")
    found = {finding.what: finding for finding in examine_machine(tmp_path)}
    assert found["sandbox: system-call-filter"].ok
    assert WITHOUT_VARIABLE in found["sandbox: system-call-filter"].found


def test_doctor_tells_of_a_wrong_name(monkeypatch, tmp_path):
    monkeypatch.setenv(WITHOUT_VARIABLE, "nonsense")
    found = {finding.what: finding for finding in examine_machine(tmp_path)}
    assert not found["sandbox"].ok
