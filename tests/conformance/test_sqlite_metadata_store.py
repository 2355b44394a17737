"""What only a store on a disk must do."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest

from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from odf_node.store.database import Database
from support.store_values import creation


def test_reopened_store_shows_what_was_committed(tmp_path: Path) -> None:
    home = HomeFolder(tmp_path / "home")
    with closing(MetadataStore(home)) as store:
        record = store.commit(creation())
        with closing(MetadataStore(home)) as again:
            assert again.list_datasets() == (record,)


def test_empty_home_finds_nothing_and_stays_as_it_is(tmp_path: Path) -> None:
    home = HomeFolder(tmp_path / "home")
    with closing(MetadataStore(home)) as store:
        assert store.list_datasets() == ()
        assert store.list_referenced_objects() == frozenset()
        assert list(store.iter_audit(limit=9)) == []
    assert not home.path.exists()


def test_connection_that_is_lent_while_the_store_closes_is_closed_when_it_comes_back(tmp_path: Path) -> None:
    for home in (HomeFolder(tmp_path / "nothing"), HomeFolder(tmp_path / "home")):
        if home.path.name == "home":
            with closing(MetadataStore(home)) as store:
                store.commit(creation())
        database = Database(home)
        with database.reading() as connection:
            database.close()
            connection.execute("SELECT 1")  # who reads is not cut off
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_change_is_told_of_every_commit_by_whomever_and_of_nothing_else(tmp_path: Path) -> None:
    home = HomeFolder(tmp_path / "home")
    with closing(MetadataStore(home)) as store, closing(MetadataStore(home)) as other:
        assert store.read_change() != store.read_change()  # nobody can say yet
        record = store.commit(creation())
        seen = [store.read_change()]
        for commit in (
            lambda: store.set_published(record.id, False),
            lambda: other.set_published(record.id, True),
        ):
            store.list_datasets()
            other.list_datasets()
            assert store.read_change() == seen[-1]
            commit()
            seen.append(store.read_change())
        assert len(set(seen)) == 3
    assert store.read_change() != store.read_change()  # closed


@pytest.mark.parametrize("still_writes", [True, False])
def test_reader_without_write_access_sees_what_somebody_else_commits_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still_writes: bool
) -> None:
    """HOME-4; as where the owner of a home works in it while another user, or a read-only mount, reads."""
    home = HomeFolder(tmp_path / "home")
    with closing(MetadataStore(home)) as first:
        record = first.commit(creation())
    changed = replace(record, published=not record.published)
    with closing(MetadataStore(home)) as reader:

        def read() -> tuple[object, object]:
            with monkeypatch.context() as without_access:
                without_access.setattr("os.access", lambda *_: False)
                return reader.list_datasets(), reader.read_change()

        before = read()
        assert before == read() == ((record,), before[1])
        with closing(MetadataStore(home)) as writer:
            writer.set_published(record.id, changed.published)
            if still_writes:
                assert read() == ((changed,), ANY)
        after = read()
        assert after == ((changed,), ANY)
        assert after[1] != before[1]
