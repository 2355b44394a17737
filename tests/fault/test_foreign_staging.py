"""What others put into the staging folder of a home is swept or left, and nothing outside of the folder is touched."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from support.offers import NOW, Judge, PublisherHome, root_chain


def test_links_folders_and_pipes_in_the_staging_folder_stop_no_command_and_lead_nowhere_home_13(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """HOME-13: a sweep takes leftovers by their names, and follows no link out of the home."""
    judge, chain = Judge.create(tmp_path / "home"), root_chain(tmp_path)
    PublisherHome(judge).keep(chain)
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "kept.txt").write_text("kept")
    (outside / "kept.txt").write_text("kept")
    home = HomeFolder(tmp_path / "home")
    for folder in (home.staging, home.downloads):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a-link").symlink_to(outside / "kept.txt")
        (folder / "a-link-to-a-folder").symlink_to(outside / "folder", target_is_directory=True)
        (folder / "a-link-to-nothing").symlink_to(outside / "nothing")
        (folder / "a-folder").mkdir()
        (folder / "a-folder" / "inside").symlink_to(outside / "folder", target_is_directory=True)
        os.mkfifo(folder / "a-pipe")
        wanted = next(iter(chain.files))
        (folder / str(wanted)).symlink_to(outside / "kept.txt")

    for words in (("gc",), ("status",), ("verify", "%"), ("scrub",), ("backup", str(tmp_path / "copy"))):
        assert main(["--home", str(home.path), *words]) == 0, capsys.readouterr().err

    assert (outside / "kept.txt").read_text() == (outside / "folder" / "kept.txt").read_text() == "kept"
    assert not (outside / "nothing").exists()
    with closing(Node(home, FixedClock(NOW))) as node:
        assert set(node.objects.iter_hashes()) == set(node.store.list_referenced_objects())
