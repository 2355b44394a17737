"""Clause WARM-2: whose work goes to which engine. No engine starts here, since none is asked anything."""

from pathlib import Path

from odf_engines.host.session import HostSession
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home


def test_only_own_work_asks_for_a_warm_engine_and_every_foreign_dataset_gets_its_own(tmp_path: Path) -> None:
    asked: list[str] = []
    rows = RowsFolder(Home(tmp_path / "home"))
    host = EngineHost(EngineWorkspace(tmp_path), rows, find_warm=lambda name: asked.append(name))
    with host.foreign_session("spark") as first, host.foreign_session("spark") as second:
        assert isinstance(first, HostSession)
        assert isinstance(second, HostSession)
        assert first.folder != second.folder
    assert asked == []

    assert host.own_session("spark") is host.own_session("spark")
    assert asked == ["spark"]
    host.close()
