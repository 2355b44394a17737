"""Clause WARM-2: whose work goes to which engine. No engine starts here, since none is asked anything."""

from contextlib import closing
from pathlib import Path

import pytest

from odf_engines.errors import ClusterUnavailableError
from odf_engines.host.session import HostSession
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.configuration.declaration import Engines
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.engines.warm_sessions import LentSession, WarmEngines
from odf_node.home_folder import HomeFolder


def test_only_own_work_asks_for_a_warm_engine_and_every_foreign_dataset_gets_its_own(tmp_path: Path) -> None:
    warm = WarmEngines(tmp_path)
    host = EngineHost(EngineWorkspace(tmp_path), RowsFolder(HomeFolder(tmp_path / "home")), warm=warm)
    with host.foreign_session("spark") as first, host.foreign_session("spark") as second:
        assert isinstance(first, HostSession)
        assert isinstance(second, HostSession)
        assert first.folder != second.folder

    own = host.own_session("spark")
    assert isinstance(own, LentSession)
    assert host.own_session("spark") is own
    host.close()
    assert warm.end()


def test_command_keeps_one_session_of_an_engine_for_all_that_it_does_and_ends_it(tmp_path: Path) -> None:
    """Clause WARM-8."""
    host = EngineHost(EngineWorkspace(tmp_path), RowsFolder(HomeFolder(tmp_path / "home")))
    own = host.own_session("spark")
    assert isinstance(own, HostSession)
    assert host.own_session("spark") is host.query_session("spark") is own
    host.close()
    assert not own.folder.exists()


def test_only_steps_of_own_datasets_ask_for_the_cluster(tmp_path: Path) -> None:
    """Clause CLUSTER-1. Nothing listens where the cluster should be, so whoever asks for it is rejected."""
    shared, secret = tmp_path / "shared", tmp_path / "secret"
    shared.mkdir()
    secret.write_text("0" * 64)
    secret.chmod(0o600)
    roles = Engines(spark_master="spark://127.0.0.1:1", spark_shared_folder=shared, spark_secret=secret)
    rows = RowsFolder(HomeFolder(tmp_path / "home"))
    with closing(EngineHost(EngineWorkspace(tmp_path), rows, roles=roles)) as host:
        own, asked = host.own_session("spark"), host.query_session("spark")
        with host.foreign_session("spark") as foreign:
            for session in (own, asked, foreign):
                assert isinstance(session, HostSession)
                assert not session.profile().has_network
                assert session.guest.arguments.get("settings") is None
        with pytest.raises(ClusterUnavailableError, match="no master takes a connection"):
            host.publishing_session("spark")
        assert host.publishing_session("datafusion") is host.own_session("datafusion")
        assert list(shared.iterdir()) == []


def test_without_a_cluster_own_steps_share_the_session_of_own_work(tmp_path: Path) -> None:
    with closing(EngineHost(EngineWorkspace(tmp_path), RowsFolder(HomeFolder(tmp_path / "home")))) as host:
        assert host.publishing_session("spark") is host.own_session("spark")


def test_file_is_shown_without_a_look_at_those_that_were_shown_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand slices are as many looks, and not fifty million."""
    (tmp_path / "slice.parquet").write_bytes(b"rows")
    looked: list[Path] = []
    with closing(EngineHost(EngineWorkspace(tmp_path), RowsFolder(HomeFolder(tmp_path / "home")))) as host:
        session = host.own_session("datafusion")
        assert isinstance(session, HostSession)
        (session.folder / "in" / "0").mkdir()
        with monkeypatch.context() as patched:
            patched.setattr(Path, "iterdir", lambda folder: looked.append(folder) or iter(()))
            shown = [session.link_input(tmp_path / "slice.parquet").name for _ in range(3)]
    assert (shown, looked) == (["0.parquet", "1.parquet", "2.parquet"], [])
