from pathlib import Path

import pytest

from odf_node.home_folder import HomeFolder, find_default_home


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"ODF_NODE_HOME": "/a", "XDG_DATA_HOME": "/b"}, Path("/a")),
        ({"XDG_DATA_HOME": "/b"}, Path("/b/odf-node")),
        ({"XDG_DATA_HOME": "relative"}, Path.home() / ".local/share/odf-node"),
        ({"ODF_NODE_HOME": "~/x"}, Path.home() / "x"),
        ({"ODF_NODE_HOME": ""}, Path.home() / ".local/share/odf-node"),
    ],
    ids=["named", "data-folder", "relative-data-folder-is-passed-over", "tilde", "empty-is-unset"],
)
def test_default_home_follows_the_environment(environment: dict[str, str], expected: Path) -> None:
    assert find_default_home(environment) == expected


def test_home_is_for_the_owner_only(tmp_path: Path) -> None:
    home = HomeFolder(tmp_path / "above" / "home")
    home.create()
    home.create()
    assert home.exists() is False
    for folder in (home.path, home.objects, home.keys, home.staging, home.downloads, home.cache):
        assert folder.stat().st_mode & 0o777 == 0o700
