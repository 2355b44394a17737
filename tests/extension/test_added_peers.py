"""A protocol of peers of an external package, in one file, in the real command line (PLUG-9)."""

import subprocess
import sys
from pathlib import Path

from support.command_line import environment_of
from support.daemons import daemon
from support.plug_in_packages import write_package

MANIFEST = Path(__file__).parents[2] / "examples" / "own-csv" / "prices.yaml"
PROGRAM = '''"""Datasets at servers of ODF's Simple Transfer Protocol, under a scheme of its own."""

from odf_node.adapters.peer_protocols import PeerProtocol
from odf_node.adapters.plain_peer import PlainPeer
from odf_node.ports.peer_errors import PushRejectedError


async def push(client, url, offered, store, objects, on_bytes):
    raise PushRejectedError(str(url), "", "this protocol only reads")


PROTOCOL = PeerProtocol({"simple+http": "http"}, PlainPeer, push)
'''


def run(home: Path, site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odf_node", *words]
    environment = environment_of(home, PYTHONPATH=str(site))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_protocol_of_a_package_is_found_by_its_scheme(tmp_path: Path) -> None:
    site, publisher, reader = tmp_path / "site", tmp_path / "publisher", tmp_path / "reader"
    write_package(site, "odf_simple", PROGRAM, "odf_node.peers", {"simple": "odf_simple:PROTOCOL"})
    assert run(publisher, site, "add", MANIFEST).returncode == 0
    assert run(publisher, site, "publish", "prices").returncode == 0
    with daemon(publisher) as served:
        address = served.url.replace("http://", "simple+http://") + "/prices"
        unknown = run(reader, tmp_path / "nowhere", "pull", address)
        assert unknown.returncode != 0
        assert "simple+http" in unknown.stderr
        pulled = run(reader, site, "pull", address)
        assert pulled.returncode == 0, pulled.stderr
    assert run(reader, site, "verify", "prices").returncode == 0
