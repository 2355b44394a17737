"""Figures of a node without a plug-in that keeps them (PLUG-8, PLUG-13)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odf_node import metrics
from odf_node.metrics import Metrics


def test_node_without_the_plug_in_keeps_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "load_plug_ins", lambda _group, _contract: {})
    found = Metrics()
    found.requests.labels(route="/a", method="GET", status="200").inc()
    found.note_request_seconds("/a", 1.0)
    found.add_gauge("here", "Is here.", lambda: 7)
    found.add_counter("each_total", "Of each.", "what").labels(what="a").inc(2)
    assert found.render() == ""


def test_port_for_figures_without_the_plug_in_is_an_error_of_the_start(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[listen]\nport = 0\n[observe]\nport = 0\n")
    hide = (
        "from odf_engines import plug_in_names\n"
        "plug_in_names.entry_points = lambda group: ()\n"
        "from odf_node.cli.main import main\nimport sys\n"
        f"sys.exit(main(['serve', '--home', {str(tmp_path / 'home')!r}, '--config', {str(settings)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide], env=os.environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert "observe.port needs the plug-in 'prometheus', which this installation does not have" in done.stderr
