"""Clause SANDBOX-19: probes of this machine are made once for a start of it."""

import os
import subprocess
import sys

import pytest

from odf_engines.sandbox import boot_notes, bubblewrap
from odf_engines.sandbox.boot_notes import find_result, forget_results, keep_result
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_node.machine import examine_machine


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "odf-node" / "sandbox-probes.json"


@pytest.fixture
def tried(tmp_path):
    file = tmp_path / "program"
    file.write_text("one")
    return file


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """Offer a bubblewrap that counts its starts; return how to ask for it anew, as another command does."""
    program, starts = tmp_path / "bwrap", tmp_path / "starts"
    starts.touch()

    def write(refused="none"):
        program.write_text(
            f'#!/bin/sh\necho >>{starts}\ncase " $* " in *" {refused} "*) exit 1;; esac\necho bubblewrap 0.8.0\n'
        )
        program.chmod(0o755)

    def ask():
        find_bubblewrap.cache_clear()
        found, made = find_bubblewrap(), len(starts.read_text())
        starts.write_text("")
        return found, made

    write()
    monkeypatch.setattr(bubblewrap, "_candidates", lambda: [("system", program)])
    yield ask, write
    find_bubblewrap.cache_clear()


def test_result_holds_for_the_file_as_it_is(cache, tried):
    assert find_result("probe", tried) is None
    keep_result("probe", "works", tried)
    assert (find_result("probe", tried), find_result("other", tried)) == ("works", None)
    os.utime(tried, ns=(1, 1))
    assert find_result("probe", tried) is None


def test_result_holds_for_one_boot(cache, tried, monkeypatch):
    keep_result("probe", "works", tried)
    monkeypatch.setattr(boot_notes, "_boot", lambda: "another")
    assert find_result("probe", tried) is None
    keep_result("other", "works", tried)
    assert "probe" not in cache.read_text()


def test_results_are_bounded(cache, tried):
    for number in range(40):
        keep_result(f"probe {number}", "works", tried)
    assert find_result("probe 0", tried) is None
    assert find_result("probe 39", tried) == "works"


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a": 1}', "\xff"])
def test_file_that_makes_no_sense_holds_no_result(cache, tried, text):
    keep_result("probe", "works", tried)
    cache.write_bytes(text.encode("latin-1"))
    assert find_result("probe", tried) is None
    keep_result("probe", "works", tried)
    assert find_result("probe", tried) == "works"


def test_file_that_another_user_can_write_holds_no_result(cache, tried):
    keep_result("probe", "works", tried)
    cache.chmod(0o620)
    assert find_result("probe", tried) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_file_of_another_user_holds_no_result(cache, tried):
    keep_result("probe", "works", tried)
    os.chown(cache, 65534, 65534)
    assert find_result("probe", tried) is None


def test_link_holds_no_result(cache, tried):
    keep_result("probe", "works", tried)
    cache.rename(cache.with_name("elsewhere"))
    cache.symlink_to("elsewhere")
    assert find_result("probe", tried) is None


def test_cache_that_cannot_be_written_is_done_without(monkeypatch, tried):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tried))
    keep_result("probe", "works", tried)
    assert find_result("probe", tried) is None
    forget_results()


def test_bubblewrap_is_tried_once(cache, counted):
    ask, write = counted
    (first, tried), (second, again) = ask(), ask()
    assert tried > 0
    assert (second, again) == (first, 0)
    write()
    os.utime(first.path, ns=(1, 1))
    assert ask()[1] > 0


def test_bubblewrap_that_lacks_something_is_tried_each_time(cache, counted):
    ask, write = counted
    write(refused="--unshare-cgroup")
    for _ in range(2):
        found, tried = ask()
        assert tried > 0
        assert not found.has_cgroup_namespace


def test_doctor_tries_anew(cache, counted, tmp_path):
    ask, _ = counted
    ask()
    find_bubblewrap.cache_clear()
    examine_machine(tmp_path)
    assert ask()[1] > 0  # by the doctor
    assert ask()[1] == 0


def test_second_command_starts_no_program(cache):
    code = (
        "import sys\nstarted = []\n"
        "sys.addaudithook(lambda event, args: started.append(args[0]) if event == 'subprocess.Popen' else None)\n"
        "from odf_engines.sandbox.layers import examine_layers\n"
        "from odf_engines.sandbox.system_calls import open_filter\n"
        "assert all(each.is_there for each in examine_layers())\nopen_filter(holds_files=True)\nprint(len(started))"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.parent.parent)}

    def count():
        return int(
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
        )

    assert count() > 0
    assert count() == 0
