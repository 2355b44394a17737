"""Nodes that the daemon opens beside the one that it serves (DAEMON-11)."""

from contextlib import closing
from pathlib import Path

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Engines, LimitSettings
from odf_node.daemon.reloading import open_beside
from odf_node.home_folder import HomeFolder
from odf_node.http.served_node import Live


def test_nodes_beside_the_server_keep_to_the_settings_in_force(tmp_path: Path) -> None:
    """Whoever pulls or rebuilds in the background reads no faster, and with no other engine, than the daemon may."""
    live = Live()
    with closing(Node(HomeFolder(tmp_path / "home"), SystemClock())) as node:
        live.configuration = Configuration(
            engines=Engines(ingest="other"),
            limits=LimitSettings(fetch_bytes_per_second=77_000, parallel_transfers=3),
        )
        with closing(open_beside(node, live)) as beside:
            assert beside.engine_roles.ingest == "other"
            assert beside.outgoing.parallel == 3
            assert beside.rate is node.rate
