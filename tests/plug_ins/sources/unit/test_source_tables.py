"""Tables of SQLite databases as sources: every row once, in the order of a column that grows (ING-30)."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.ports.sources import Fetched, SourceNotFoundError, SourceRejectedError, SourceUnavailableError, UpToDate
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import MalformedError
from odf_protocol.events import FetchStepUrl, SourceState
from odf_protocol.timestamp import Timestamp
from odf_sources.sqlite import parse_table_url

NOW = Timestamp.parse("2024-01-01T00:00:00Z")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    run(path, 'CREATE TABLE "my ""orders" (id INTEGER PRIMARY KEY, note TEXT, price REAL, raw BLOB, "at?" TEXT)')
    put(path, (1, "a", 1.5, b"\xff", "2024-01-02"), (2, "\u00e4 'b'", None, None, "2024-01-01"))
    return path


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


def put(path: Path, *rows: tuple) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany('INSERT OR REPLACE INTO "my ""orders" VALUES (?, ?, ?, ?, ?)', rows)


def fetch(path: Path, state: SourceState | None = None, **options: str) -> Fetched | UpToDate:
    named = {"table": "my%20%22orders", "by": "at%3F", **options}
    url = f"sqlite://{path}?" + "&".join(f"{name}={value}" for name, value in named.items())
    folder = path.parent / "fetched"
    folder.mkdir(exist_ok=True)
    reader = LocalSourceReader(limits=SourceLimits(closed=(path.parent / "closed",)))
    return asyncio.run(reader.fetch(FetchStepUrl(url=url), state=state, now=NOW, folder=folder))


def rows_of(fetched: Fetched | UpToDate) -> list[dict]:
    assert isinstance(fetched, Fetched)
    return [json.loads(line) for line in fetched.path.read_text().splitlines()]


def ids_of(fetched: Fetched | UpToDate) -> list[int]:
    return [int(row["id"]) for row in rows_of(fetched)]


def test_rows_come_as_texts_in_the_order_of_the_column_and_each_once(path: Path) -> None:
    first = fetch(path)
    assert rows_of(first) == [
        {"id": "2", "note": "\u00e4 'b'", "price": None, "raw": None, "at?": "2024-01-01"},
        {"id": "1", "note": "a", "price": "1.5", "raw": "ff", "at?": "2024-01-02"},
    ]
    assert isinstance(first, Fetched)
    assert first.source_state is not None
    assert (first.source_state.kind, json.loads(first.source_state.value)["last"]) == (
        "odf-node/table-cursor",
        "2024-01-02",
    )
    assert (first.has_more, first.event_time) == (False, NOW)
    assert fetch(path, first.source_state) == UpToDate()
    put(path, (2, "changed", 2.0, None, "2024-01-03"))
    assert [row["note"] for row in rows_of(fetch(path, first.source_state))] == ["changed"]
    elsewhere = SourceState(source_name="default", kind="odf/etag", value="x")
    assert ids_of(fetch(path, elsewhere)) == [1, 2]


def test_rows_of_one_value_come_together_and_no_limit_leaves_any_out(path: Path) -> None:
    put(path, *((n, "x", 0.5, None, f"2024-02-{n // 3:02}") for n in range(3, 21)))
    state, batches = None, []
    while not isinstance(found := fetch(path, state, limit="4"), UpToDate):
        batches.append(ids_of(found))
        assert found.has_more == (20 not in batches[-1])
        state = found.source_state
    assert batches == [[2, 1, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17], [18, 19, 20]]


@pytest.mark.parametrize("kind", ["INTEGER", "REAL", "TEXT"])
def test_numbers_and_texts_are_followed_alike(kind: str, path: Path) -> None:
    run(path, f"CREATE TABLE n (id INTEGER, v {kind})", "INSERT INTO n VALUES (1, 9), (2, 10), (3, 11)")
    first = fetch(path, table="n", by="v", limit="1")
    assert isinstance(first, Fetched)
    rest = fetch(path, first.source_state, table="n", by="v")
    assert sorted(ids_of(first) + ids_of(rest)) == [1, 2, 3]


def test_another_table_or_column_is_read_from_its_beginning(path: Path) -> None:
    first = fetch(path)
    assert isinstance(first, Fetched)
    assert ids_of(fetch(path, first.source_state, by="id")) == [1, 2]
    odd = SourceState(source_name="default", kind="odf-node/table-cursor", value="[]")
    assert ids_of(fetch(path, odd)) == [2, 1]


def test_rows_that_would_never_be_read_are_rejected(path: Path) -> None:
    put(path, (3, "c", None, None, None))
    with pytest.raises(MalformedError, match="would never be read"):
        fetch(path)


def test_database_is_read_and_nothing_else_happens(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    fetch(path)
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"shop.db", "fetched"}
    with pytest.raises(MalformedError, match="no such table"):
        fetch(path, table="x%22%3B%20DROP%20TABLE%20y%3B--")
    with pytest.raises(MalformedError, match="columns id, note"):
        fetch(path, by="1")
    (tmp_path / "other.db").write_bytes(b"no database, but long enough to be taken for one" * 100)
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        fetch(tmp_path / "other.db")
    with pytest.raises(SourceNotFoundError):
        fetch(tmp_path / "none.db")
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "keys.db").write_bytes(before)
    (tmp_path / "link.db").symlink_to(tmp_path / "closed" / "keys.db")
    with pytest.raises(SourceRejectedError):
        fetch(tmp_path / "link.db")


WITHOUT_END = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


def test_view_without_end_of_a_hostile_database_is_given_up(path: Path) -> None:
    run(path, f"CREATE VIEW v AS {WITHOUT_END}")
    (path.parent / "fetched").mkdir()
    url = f"sqlite://{path}?table=v&by=x"
    reader = LocalSourceReader(limits=SourceLimits(total_s=0.3))
    with pytest.raises(SourceUnavailableError, match="does not answer: interrupted"):
        asyncio.run(reader.fetch(FetchStepUrl(url=url), state=None, now=NOW, folder=path.parent / "fetched"))


MAKERS = {
    "view": 'CREATE VIEW v AS SELECT id AS x, {} FROM "my ""orders"',
    "computed-columns": "CREATE TABLE v (x INTEGER PRIMARY KEY, {})",
}


@pytest.mark.parametrize("maker", MAKERS.keys())
def test_row_that_a_hostile_database_computes_is_bounded_as_a_whole(maker: str, path: Path) -> None:
    form = "zeroblob(9000000) AS c{}" if maker == "view" else "c{} AS (zeroblob(9000000))"
    run(path, MAKERS[maker].format(", ".join(form.format(number) for number in range(20))))
    if maker != "view":
        run(path, "INSERT INTO v VALUES (1)")
    with pytest.raises(SourceUnavailableError, match="too big"):
        fetch(path, table="v", by="x")
    assert list((path.parent / "fetched").iterdir()) == []


def test_large_values_that_are_stored_are_read(path: Path) -> None:
    columns = ", ".join(f"c{number}" for number in range(20))
    run(
        path,
        f"CREATE TABLE large (x INTEGER PRIMARY KEY, {columns})",
        "INSERT INTO large (x, c7) VALUES (1, zeroblob(9000000))",
    )
    (row,) = rows_of(fetch(path, table="large", by="x"))
    assert row["c7"] == "00" * 9_000_000


def test_address_of_two_slashes_is_the_file_that_was_inspected(path: Path) -> None:
    # SQLite reads file://localhost/a as /a, which nobody would have looked at.
    url = f"sqlite:///{path}?table=my%20%22orders&by=id"
    (path.parent / "fetched").mkdir()
    reader = LocalSourceReader()
    found = asyncio.run(reader.fetch(FetchStepUrl(url=url), state=None, now=NOW, folder=path.parent / "fetched"))
    assert ids_of(found) == [1, 2]


@pytest.mark.parametrize("value", ["NULL", "x'00'"])
def test_table_of_one_row_that_would_never_be_read_is_rejected(value: str, path: Path) -> None:
    run(path, "CREATE TABLE n (id INTEGER, v)", f"INSERT INTO n VALUES (1, 'a'), (2, {value}), (3, 5)")
    with pytest.raises(MalformedError, match="would never be read"):
        fetch(path, table="n", by="v")


def test_empty_table_has_nothing_new(path: Path) -> None:
    run(path, "CREATE TABLE n (id INTEGER)")
    assert fetch(path, table="n", by="id") == UpToDate()


@pytest.mark.parametrize(
    "url",
    ["sqlite://host/a.db?table=t&by=c", "sqlite:a.db?table=t&by=c", "sqlite:///a.db", "sqlite:///a.db?table=t&by=",
     "sqlite:///a.db?table=t&by=c&limit=0", "sqlite:///a.db?table=t&by=c&limt=5", "sqlite:///a.db?table=t&table=u&by=c"],
)  # fmt: skip
def test_url_that_names_no_table_is_rejected(url: str) -> None:
    with pytest.raises(MalformedError, match="URL of a table"):
        parse_table_url(url)
