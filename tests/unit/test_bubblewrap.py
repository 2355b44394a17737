"""Clauses SANDBOX-1 and SANDBOX-2: which bubblewrap is used, and what is said when none works."""

import pytest

from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox import bubblewrap, system_calls
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.layers import try_filter


@pytest.fixture
def proposal(monkeypatch, tmp_path):
    """Offer programs in order of preference: origin, version, exit code."""

    def set_candidates(*programs):
        candidates = []
        for origin, version, code in programs:
            path = tmp_path / origin
            path.write_text(
                f'#!/bin/sh\nif [ "$1" = --version ]; then echo "bubblewrap {version}"; exit 0; fi\n'
                f"echo 'bwrap: no permission to create a namespace' >&2\nexit {code}\n"
            )
            path.chmod(0o755)
            candidates.append((origin, path))
        monkeypatch.setattr(bubblewrap, "_candidates", lambda: candidates)
        forget()

    def forget():
        find_bubblewrap.cache_clear()
        try_filter.cache_clear()

    yield set_candidates
    forget()


def test_this_machine_has_one_that_works():
    found = find_bubblewrap()
    assert found.origin in ("system", "wheel")
    assert str(found.path) in str(found)


def test_systems_is_preferred(proposal):
    proposal(("system", "0.8.0", 0), ("wheel", "0.11.0", 0))
    assert (find_bubblewrap().origin, find_bubblewrap().version) == ("system", "0.8.0")


@pytest.mark.parametrize("broken", [("system", "0.4.1", 0), ("system", "0.8.0", 1), ("system", "x.y", 0)])
def test_wheels_is_used_where_the_systems_does_not_work(proposal, broken):
    proposal(broken, ("wheel", "0.11.0", 0))
    assert find_bubblewrap().origin == "wheel"


def test_rejection_says_what_each_of_them_answered(proposal):
    proposal(("system", "0.4.1", 0), ("wheel", "0.11.0", 1))
    with pytest.raises(SandboxUnavailableError) as caught:
        find_bubblewrap()
    assert "0.4.1 is older than 0.6.3" in caught.value.reason
    assert "no permission to create a namespace" in caught.value.reason


def test_rejection_says_what_to_install(proposal):
    proposal()
    with pytest.raises(SandboxUnavailableError, match="install the package bubblewrap"):
        find_bubblewrap()


def test_no_filter_means_no_sandbox(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "pyseccomp", None)
    system_calls.filter_program.cache_clear()
    with pytest.raises(SandboxUnavailableError, match="libseccomp2"):
        system_calls.filter_program()
    system_calls.filter_program.cache_clear()


def test_engine_opens_no_session_without_a_sandbox(proposal, tmp_path):
    from odf_engines.contract import Limits
    from odf_spark.engine import SparkEngine

    proposal()
    with pytest.raises(SandboxUnavailableError):
        SparkEngine(tmp_path / "cache").open(tmp_path, Limits())
    assert not (tmp_path / "cache").exists()
