"""What only a store on a disk must do."""

from contextlib import closing
from pathlib import Path

from odf_node.adapters.sqlite_store import SqliteMetadataStore
from odf_node.home import Home
from support.store_values import creation


def test_reopened_store_shows_what_was_committed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with closing(SqliteMetadataStore(home)) as store:
        record = store.commit(creation())
        with closing(SqliteMetadataStore(home)) as again:
            assert again.list_datasets() == (record,)


def test_empty_home_finds_nothing_and_stays_as_it_is(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with closing(SqliteMetadataStore(home)) as store:
        assert store.list_datasets() == ()
        assert store.list_referenced_objects() == frozenset()
        assert list(store.iter_audit(limit=9)) == []
    assert not home.path.exists()
