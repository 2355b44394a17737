from pathlib import Path

import pytest

from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from support.open_stores import open_store


@pytest.fixture
def store(tmp_path: Path) -> MetadataStore:
    return open_store(HomeFolder(tmp_path / "home"))
