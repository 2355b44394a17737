from pathlib import Path

import pytest

from conformance.metadata_store_suite import MetadataStoreSuite
from odf_node.adapters.sqlite_store import SqliteMetadataStore
from odf_node.home import Home
from odf_node.ports import MetadataStore


class TestSqliteMetadataStore(MetadataStoreSuite):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = Home(tmp_path / "home")

    def make_store(self) -> MetadataStore:
        return SqliteMetadataStore(self.home)
