"""Manifests of strangers that want more than rows: this node's secrets, and all of its machine (ING-17, ING-23)."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from odf_engines.sandbox.resources import Usage, usage_of
from odf_node.adapters.key_files import KeyFiles
from odf_node.home_folder import HomeFolder
from odf_node.ports.sources import Commands, SourceTooLargeError
from odf_node.sources import LocalSourceReader, SourceLimits, watched_programs
from odf_protocol.events import PrepStepPipe
from support.command_line import list_kept, run_command

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: stolen
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
      read: {{kind: Csv, ddlSchema: [line STRING]}}
      merge: {{kind: Append}}
"""


def pull(tmp_path: Path, fetch: str, **environment: str) -> tuple[int, str]:
    """Add the manifest of a stranger, and pull; nothing may have been taken."""
    home, manifest = tmp_path / "home", tmp_path / "stolen.yaml"
    manifest.write_text(MANIFEST.format(fetch=fetch))
    assert run_command(home, "add", manifest).returncode == 0
    before = list_kept(home)
    pulled = run_command(home, "pull", "stolen", environment=environment)
    assert list_kept(home) == before
    assert before["objects"] == set()
    return pulled.returncode, pulled.stderr


@pytest.mark.parametrize("place", ["home/keys/datasets/*.pem", "home/odf-node.sqlite", "link/keys/datasets/*.pem"])
@pytest.mark.parametrize("kind", ["FilesGlob", "Url"])
def test_file_of_the_home_is_no_source(tmp_path: Path, place: str, kind: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")
    if kind == "FilesGlob":
        fetch = f"{{kind: FilesGlob, path: '{tmp_path / place}'}}"
    else:
        fetch = f"{{kind: Url, url: 'file://{tmp_path / place.replace('keys/datasets/*.pem', 'writers.lock')}'}}"
    code, stated = pull(tmp_path, fetch)
    assert (code, "secrets of this node" in stated) == (4, True)


@pytest.mark.parametrize("secret", ["keys/node.pem", "odf-node.sqlite"])
def test_second_name_of_a_file_with_secrets_is_no_source(tmp_path: Path, secret: str) -> None:
    """ING-23: a hard link leads nowhere, and has a path of its own."""
    home, manifest, link = tmp_path / "home", tmp_path / "stolen.yaml", tmp_path / "innocent.csv"
    manifest.write_text(MANIFEST.format(fetch=f"{{kind: Url, url: 'file://{link}'}}"))
    assert run_command(home, "add", manifest).returncode == 0
    KeyFiles(HomeFolder(home)).get_or_create_node_key()
    link.hardlink_to(home / secret)
    pulled = run_command(home, "pull", "stolen")
    assert (pulled.returncode, "secrets of this node" in pulled.stderr) == (4, True)
    link.unlink()
    link.write_text("a row")
    (tmp_path / "other.csv").hardlink_to(link)
    assert run_command(home, "pull", "stolen").returncode == 0


@pytest.mark.parametrize(
    "place", ["/proc/self/environ", "/proc/1/environ", "/proc/self/cmdline", "/dev/../proc/self/maps"]
)
def test_environment_of_this_process_is_no_source(tmp_path: Path, place: str) -> None:
    code, stated = pull(tmp_path, f"{{kind: Url, url: 'file://{place}'}}", ODF_NODE_TOKEN="s3cret")
    assert (code, "secrets of this node" in stated) == (4, True)
    assert "s3cret" not in stated


def test_token_of_this_node_does_not_travel_in_a_url_or_a_header(tmp_path: Path) -> None:
    token = "${{ env.ODF_NODE_TOKEN }}"
    for where in (
        f"url: 'http://127.0.0.1:9/{token}'",
        f"url: 'http://127.0.0.1:9/', headers: [{{name: X, value: '{token}'}}]",
    ):
        folder = tmp_path / str(len(where))
        folder.mkdir()
        code, stated = pull(folder, f"{{kind: Url, {where}}}", ODF_NODE_TOKEN="s3cret")
        assert (code, "ODF_NODE_TOKEN" in stated) == (3, True)
        assert "s3cret" not in stated


@pytest.mark.parametrize(
    ("script", "limit", "memory_bytes"),
    [
        ("while :; do sleep 60 & done", "command_processes", 1024**3),
        ("head -c 500000000 /dev/urandom | tail -c 400000000", "command_memory_bytes", 100 * 1024**2),
    ],
    ids=["processes", "memory"],
)
def test_sandboxed_command_that_takes_the_machine_is_ended(
    tmp_path: Path, script: str, limit: str, memory_bytes: int
) -> None:
    limits = SourceLimits(command_memory_bytes=memory_bytes, command_processes=40, command_s=200)
    reader = LocalSourceReader(limits=limits, commands=Commands.SANDBOXED)
    path = tmp_path / "packed"
    path.write_bytes(b"x")
    step = PrepStepPipe(command=("sh", "-c", script))
    with pytest.raises(SourceTooLargeError) as refused:
        asyncio.run(reader.prepare(step, path=path, name="s", folder=tmp_path))
    assert refused.value.limit == limit
    assert list(tmp_path.iterdir()) == [path]


FORKS = """
import os, signal
held = bytearray(70 * 1024**2)
child = os.fork()
if not child:
    signal.pause()
os.waitpid(child, 0)
"""


def test_command_within_its_limit_is_not_ended_for_a_fork_that_shows_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = []

    def look(process_id: int) -> Usage:
        usage = usage_of(process_id)
        shown.append(usage.memory_bytes)
        if usage.memory_bytes > limits.command_memory_bytes:
            os.kill(usage.process_ids[-1], signal.SIGKILL)  # it was looked at as it stood
        return usage

    async def run() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", FORKS)
        return await watched_programs.wait_watched(process, "s", limits)

    limits = SourceLimits(command_memory_bytes=100 * 1024**2)
    monkeypatch.setattr(watched_programs, "usage_of", look)
    assert asyncio.run(run()) == 0
    assert max(shown) > limits.command_memory_bytes
