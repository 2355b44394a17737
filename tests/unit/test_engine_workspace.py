import contextlib
import threading
import time
from pathlib import Path

from odf_node.engine_workspace import OWNER, EngineWorkspace, sweep_workspaces


def test_workspace_in_which_a_dying_process_still_writes_is_removed_whole(tmp_path: Path) -> None:
    workspace = EngineWorkspace(tmp_path)
    folder = workspace.path / "out"
    folder.mkdir()
    until = time.monotonic() + 0.5

    def write() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / str(time.monotonic_ns())).touch()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        workspace.close()
    finally:
        writer.join()
    sweep_workspaces(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sweep_leaves_workspaces_alone_whose_process_lives(tmp_path: Path) -> None:
    workspace = EngineWorkspace(tmp_path)
    path = workspace.path
    sweep_workspaces(tmp_path)
    assert path.is_dir()
    workspace.close()
    assert list(tmp_path.iterdir()) == []


def test_workspace_that_was_removed_in_part_is_swept(tmp_path: Path) -> None:
    rest = tmp_path / "process-x" / "out"
    rest.mkdir(parents=True)
    (rest / "file").touch()
    assert not (rest.parent / OWNER).exists()
    sweep_workspaces(tmp_path)
    assert list(tmp_path.iterdir()) == []
