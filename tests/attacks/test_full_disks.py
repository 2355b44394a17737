"""Whoever fills the disk of a node takes nobody the right to read it: reading needs no writing (HOME-49)."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_node.adapters.key_files import KeyFiles
from odf_node.home_folder import HomeFolder
from odf_node.records.audit import AuditEntry, Outcome
from odf_node.store import MetadataStore
from support.daemons import daemon
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.pushes import ask

DATABASE = "odf-node.sqlite"
FILL = 'cp -a "$1"/. "$2"; dd if=/dev/zero of="$2/cache/fill" bs=4096 2>/dev/null; shift 2; '
EACH = 'for words in "$@"; do python=${0}; "$python" -m odf_node $words; echo "code $?"; done'
READING = ["list -o json", "log cities -o oneline", "inspect audit", "tail cities", "verify cities"]


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path)


@pytest.fixture
def home(tmp_path: Path, chain: PeerChain) -> Path:
    """A home whose newest commits are in the log of its database, as a crash leaves it."""
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    publisher.keep(chain)
    left, store = tmp_path / "left", MetadataStore(publisher.judge.home)
    done = Outcome.DONE
    store.append_audit(
        AuditEntry(at=NOW, actor="cli", command="publish", subject="cities", outcome=done, detail="the newest entry")
    )
    shutil.copytree(publisher.judge.home.path, left)  # while the database is open
    store.close()
    assert (left / f"{DATABASE}-wal").stat().st_size > 0
    return left


def run_full(home: Path, small: Path, script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a script over a copy of the home on a disk without a free byte."""
    small.mkdir(exist_ok=True)
    around: Sequence[str | Path] = [find_bubblewrap().path, "--dev-bind", "/", "/", "--size", "3000000"]
    return subprocess.run(
        [*around, "--tmpfs", small, "bash", "-c", FILL + script, sys.executable, home, small, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize("left", ["log-and-index", "log", "nothing"])
def test_everything_is_read_on_a_disk_without_a_free_byte(
    tmp_path: Path, home: Path, chain: PeerChain, left: str
) -> None:
    if left != "log-and-index":
        (home / f"{DATABASE}-shm").unlink()
    if left == "nothing":
        done = subprocess.run([sys.executable, "-m", "odf_node", "publish", "cities", "--home", home], check=False)
        assert done.returncode == 0
        for suffix in ("-wal", "-shm"):
            (home / f"{DATABASE}{suffix}").unlink(missing_ok=True)
    small = tmp_path / "small"
    read = run_full(home, small, EACH, *(f"{words} --home {small}" for words in READING))
    assert read.stdout.count("code 0") == len(READING), read.stdout + read.stderr
    assert f"{chain.head.sequence_number:>6}  {chain.head.hash.short}" in read.stdout
    assert "the newest entry" in read.stdout
    assert "cannot write" not in read.stderr


def test_what_writes_says_that_the_disk_is_full_and_changes_nothing(tmp_path: Path, home: Path) -> None:
    (home / f"{DATABASE}-shm").unlink()
    small = tmp_path / "small"
    listing = f"list -w -o json --home {small}"
    done = run_full(home, small, EACH, listing, f"publish cities --off --home {small}", listing)
    before, rest = done.stdout.split("code 0\n", 1)
    between, after = rest.split("code 5\n")
    assert (between, after) == ("", f"{before}code 0\n")
    assert str(small) in done.stderr


def test_two_read_at_once_where_only_one_gets_in(tmp_path: Path, home: Path) -> None:
    (home / f"{DATABASE}-shm").unlink()
    small = tmp_path / "small"
    script = 'for _ in 1 2 3 4; do "$0" -m odf_node $1 & done; wait'
    done = run_full(home, small, script, f"list -o json --home {small}")
    decoder, text, count = json.JSONDecoder(), done.stdout, 0
    while text.strip():
        listed, end = decoder.raw_decode(text.lstrip())
        assert [entry["name"] for entry in listed] == ["cities"], done.stderr
        text, count = text.lstrip()[end:], count + 1
    assert count == 4, done.stderr


def test_daemon_on_a_full_disk_serves(tmp_path: Path, home: Path, chain: PeerChain) -> None:
    (home / f"{DATABASE}-shm").unlink()
    (home / "keys").mkdir(exist_ok=True)
    prepared = subprocess.run(
        [sys.executable, "-m", "odf_node", "publish", "cities", "--home", home], capture_output=True, check=False
    )
    assert prepared.returncode == 0, prepared.stderr
    KeyFiles(HomeFolder(home)).get_or_create_node_key()
    small = tmp_path / "small"
    small.mkdir()
    script = FILL + 'exec "$@"'
    around = [find_bubblewrap().path, "--dev-bind", "/", "/", "--size", "3000000", "--tmpfs", small]
    with daemon(small, around=[*around, "bash", "-c", script, "bash", home, small]) as node:
        status, body = ask(node, "GET", "/cities/refs/head")
        assert (status, body) == (200, str(chain.head.hash).encode())
        status, body = ask(node, "GET", f"/_odf/v1/datasets/{chain.id}/blocks")
        assert (status, bool(body)) == (200, True)
