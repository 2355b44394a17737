"""Tables of PostgreSQL as sources: every row once, in the order of a column that grows (ING-31)."""

import asyncio
import io
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from odf_node.ingest.source_variables import fill_in
from odf_node.ports.sources import Fetched, SourceTooLargeError, SourceUnavailableError, UpToDate
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import MalformedError
from odf_protocol.events import FetchStepUrl, SourceState
from odf_protocol.timestamp import Timestamp
from odf_sources.postgres import parse_postgres_url, request_of
from odf_sources.readers.postgres import answer
from support.daemons import make_certificate
from support.false_postgres import false_postgres, forward_encrypted
from support.postgres_server import PASSWORD, PostgresServer, postgres_server

NOW = Timestamp.parse("2024-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("pg")) as server:
        yield server


@pytest.fixture
def shop(server: PostgresServer) -> PostgresServer:
    server.run(
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
        'CREATE TABLE "my ""orders" (id int PRIMARY KEY, note text, price numeric, raw bytea, "at?" text)',
        """INSERT INTO "my ""orders" VALUES (1, 'a', 1.50, '\\xff', '2024-01-02')""",
        """INSERT INTO "my ""orders" VALUES (2, 'ä ''b''', null, null, '2024-01-01')""",
    )
    return server


def step_of(server: PostgresServer, **options: str) -> FetchStepUrl:
    named = {"by": "id"} | ({} if "query" in options else {"table": 'my "orders', "by": "at?"}) | options
    asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in named.items())
    step = FetchStepUrl(url=f"postgresql://postgres:${{{{ env.SHOP }}}}@/postgres?host={server.folder}&{asked}")
    return fill_in(step, {"SHOP": PASSWORD})


def fetch(
    server: PostgresServer, folder: Path, state: SourceState | None = None, limits: SourceLimits | None = None,
    **options: str,
) -> Fetched | UpToDate:  # fmt: skip
    reader = LocalSourceReader(limits=limits or SourceLimits())
    return asyncio.run(reader.fetch(step_of(server, **options), state=state, now=NOW, folder=folder))


def read(server: PostgresServer, last: str | None = None, **options: str) -> tuple[list[dict], dict]:
    """Ask in this process, which saves its start; return rows and answer."""
    rows = io.BytesIO()
    found = answer(request_of(parse_postgres_url(step_of(server, **options).url), last, SourceLimits()), rows)
    return [json.loads(line) for line in rows.getvalue().splitlines()], found


def rows_of(fetched: Fetched | UpToDate) -> list[dict]:
    assert isinstance(fetched, Fetched)
    return [json.loads(line) for line in fetched.path.read_text().splitlines()]


def ids_of(fetched: Fetched | UpToDate) -> list[int]:
    return [int(row["id"]) for row in rows_of(fetched)]


def state_of(fetched: Fetched | UpToDate) -> SourceState:
    assert isinstance(fetched, Fetched)
    assert fetched.source_state is not None
    return fetched.source_state


def test_rows_come_as_texts_in_the_order_of_the_column_and_each_once(shop: PostgresServer, tmp_path: Path) -> None:
    first = fetch(shop, tmp_path)
    assert rows_of(first) == [
        {"id": "2", "note": "ä 'b'", "price": None, "raw": None, "at?": "2024-01-01"},
        {"id": "1", "note": "a", "price": "1.50", "raw": "ff", "at?": "2024-01-02"},
    ]
    assert isinstance(first, Fetched)
    assert (state_of(first).kind, json.loads(state_of(first).value)) == (
        "odf-node/table-cursor",
        {"table": 'my "orders', "by": "at?", "last": "2024-01-02"},
    )
    assert (first.has_more, first.event_time) == (False, NOW)
    assert fetch(shop, tmp_path, state_of(first)) == UpToDate()
    shop.run("""UPDATE "my ""orders" SET note = 'changed', "at?" = '2024-01-03' WHERE id = 2""")
    assert [row["note"] for row in rows_of(fetch(shop, tmp_path, state_of(first)))] == ["changed"]
    assert len(list(tmp_path.iterdir())) == 2  # nothing of what was up to date


def test_rows_of_one_value_come_together_and_no_limit_leaves_any_out(shop: PostgresServer) -> None:
    shop.run("CREATE TABLE n AS SELECT id, '2024-02-01'::date + id / 3 AS day FROM generate_series(3, 20) AS id")
    last, batches = None, []
    while rows := (found := read(shop, last, table="n", by="day", limit="4"))[0]:
        batches.append(sorted(int(row["id"]) for row in rows))
        assert found[1]["has_more"] == (20 not in batches[-1])
        last = found[1]["last"]
    assert batches == [[3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14], [15, 16, 17, 18, 19, 20]]


VALUES = {
    "true::bool": "true",
    "12::int2": "12",
    "9223372036854775807::int8": "9223372036854775807",
    "123456789012345678901234567890.120::numeric": "123456789012345678901234567890.120",
    "'NaN'::numeric": "NaN",
    "0.1::float4": "0.1",
    "1e300::float8": "1e+300",
    "'-Infinity'::float8": "-Infinity",
    "'2024-02-29'::date": "2024-02-29",
    "'infinity'::date": "infinity",
    "'2024-01-01 12:00:00.123456'::timestamp": "2024-01-01 12:00:00.123456",
    "'2024-01-01 12:00:00.5+03'::timestamptz": "2024-01-01 09:00:00.5Z",
    "'0044-03-15 12:00:00+00 BC'::timestamptz": "0044-03-15 12:00:00+00 BC",
    "'23:59:59.5'::time": "23:59:59.5",
    "'1 day 02:00'::interval": "P1DT2H",
    "'\\xdeadbeef'::bytea": "deadbeef",
    "'{\"a\":  1.50}'::json": '{"a":  1.50}',
    "'{\"a\":  1.50}'::jsonb": '{"a": 1.50}',
    "ARRAY[1.50, null]": "[1.50,null]",
    "ARRAY[['a', 'b\"'], ['c', 'd']]": '[["a","b\\""],["c","d"]]',
    "'8e0f8f4e-3b5e-4b0c-9b0a-0f8e4f3b5e4b'::uuid": "8e0f8f4e-3b5e-4b0c-9b0a-0f8e4f3b5e4b",
    "'a\nb'::varchar(5)": "a\nb",
    "'low'::level": "low",
    "'low'::level_domain": "low",
}


def test_values_of_each_type_are_the_texts_that_say_them_whole(shop: PostgresServer) -> None:
    shop.run("CREATE TYPE level AS ENUM ('low', 'high')", "CREATE DOMAIN level_domain AS level")
    columns = ", ".join(f"{value} AS c{number}" for number, value in enumerate(VALUES))
    ((row,), _) = read(shop, query=f"SELECT 1 AS id, {columns}")
    assert [row[f"c{number}"] for number in range(len(VALUES))] == list(VALUES.values())


@pytest.mark.parametrize("value", ["'1'::money", "ROW(1, 2)", "'[1,2)'::int4range", "'10:00+02'::timetz"])
def test_type_that_no_text_says_whole_is_rejected_by_its_name(value: str, shop: PostgresServer) -> None:
    rows, found = read(shop, query=f"SELECT 1 AS id, {value} AS c")
    assert rows == []
    assert found["error"]["kind"] == "malformed"
    assert "'query' can convert others" in found["error"]["expected"]
    assert found["error"]["found"].startswith("c of the type ")


FOLLOWED = {
    "int8": "9007199254740993", "numeric": "0.1000000000000000055", "float8": "0.1", "date": "2024-01-31",
    "timestamp": "2024-01-31 23:59:59.999999", "timestamptz": "2024-01-31 23:59:59.999999+05", "text": "ä\"'",
    "uuid": "8e0f8f4e-3b5e-4b0c-9b0a-0f8e4f3b5e4b", "xid8": "3", "varchar": "x", "pg_lsn": "16/B374D848",
}  # fmt: skip


def test_columns_of_all_ordered_types_are_followed_without_loss(shop: PostgresServer) -> None:
    for kind, value in FOLLOWED.items():
        query = f"SELECT 1 AS id, $v${value}$v$::{kind} AS c"
        rows, found = read(shop, query=query, by="c")
        assert len(rows) == 1, found
        assert read(shop, found["last"], query=query, by="c") == ([], {"last": None, "has_more": False}), kind


def test_another_table_query_or_column_is_read_from_its_beginning(shop: PostgresServer, tmp_path: Path) -> None:
    state = state_of(fetch(shop, tmp_path))
    assert ids_of(fetch(shop, tmp_path, state, by="id")) == [1, 2]
    asked = {"query": 'SELECT * FROM "my ""orders"', "by": "at?"}
    found = fetch(shop, tmp_path, state, **asked)
    assert ids_of(found) == [2, 1]
    assert fetch(shop, tmp_path, state_of(found), **asked) == UpToDate()
    shop.run("CREATE SCHEMA s", 'CREATE TABLE s."my ""orders" ("at?" text, id int)')
    assert fetch(shop, tmp_path, state, schema="s") == UpToDate()
    odd = SourceState(source_name="default", kind="odf-node/table-cursor", value='{"table": "x", "last": []}')
    assert ids_of(fetch(shop, tmp_path, odd)) == [2, 1]


UNREADABLE = {
    "null": ("SELECT 1 AS id UNION SELECT null", "would never be read"),
    "nan": ("SELECT 1::float8 AS id UNION SELECT 'NaN'", "found NaN, after which nothing is"),
    "infinity": ("SELECT 'infinity'::timestamptz AS id", "found infinity, after which"),
    "unordered": ("SELECT true AS id", "a number, time or text in id"),
    "no-such-column": ("SELECT 1 AS x", "found columns x"),
    "twice": ("SELECT 1 AS id, 2 AS id", "columns of different names"),
    "no-such-table": ("SELECT * FROM nowhere", "nowhere"),
    "no-query": ("SELEC 1", "syntax error"),
    "large-row": ("SELECT 1 AS id, repeat('x', 17000000) AS c", "rows of at most 16 MiB, found one of 17000"),
}


@pytest.mark.parametrize(("query", "stated"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_rows_that_cannot_be_followed_are_rejected(query: str, stated: str, shop: PostgresServer) -> None:
    rows, found = read(shop, query=query)
    assert rows == []
    assert found["error"]["kind"] == "malformed"
    assert stated in f"{found['error']['expected']}, found {found['error']['found']}"


WRITES = [
    "SELECT 1 AS id; DROP TABLE victim",
    "SELECT 1 AS id) AS q; DROP TABLE victim; --",
    "SELECT 1 AS id) AS q; COMMIT; DROP TABLE victim; SELECT (1",
    "SELECT write() AS id",
    "SELECT set_config('transaction_read_only', 'off', false)::text AS c, write() AS id",
    "WITH d AS (DELETE FROM victim RETURNING 1 AS id) SELECT * FROM d",
]


@pytest.mark.parametrize("query", WRITES)
def test_query_that_writes_is_rejected_and_changes_nothing(query: str, shop: PostgresServer) -> None:
    shop.run(
        "CREATE TABLE victim AS SELECT 1 AS id",
        "CREATE FUNCTION write() RETURNS int LANGUAGE sql AS 'DELETE FROM victim RETURNING 1'",
    )
    rows, found = read(shop, query=query)
    assert rows == []
    assert found["error"]["kind"] == "malformed", found
    with shop.connect() as connection:
        assert connection.execute("SELECT count(*) FROM victim").fetchone() == (1,)


def test_number_of_the_transaction_leaves_out_none_that_ends_late(shop: PostgresServer) -> None:
    shop.run("CREATE TABLE t (id int, version xid8 DEFAULT pg_current_xact_id())")
    with shop.connect() as slow, slow.transaction():
        slow.execute("INSERT INTO t VALUES (1)")
        shop.run("INSERT INTO t VALUES (2)")
        nothing = [], {"last": None, "has_more": False}
        assert read(shop, table="t", by="version") == nothing  # 1 could still be committed before 2
    rows, found = read(shop, table="t", by="version")
    assert [row["id"] for row in rows] == ["1", "2"]
    assert read(shop, found["last"], table="t", by="version") == nothing


def test_limits_of_bytes_and_time_hold(shop: PostgresServer, tmp_path: Path) -> None:
    endless = "SELECT n AS id, repeat('x', 1000) AS c FROM generate_series(1, 100000) AS n"
    with pytest.raises(SourceTooLargeError, match="size_bytes"):
        fetch(shop, tmp_path, query=endless, limits=SourceLimits(size_bytes=300_000))
    with pytest.raises(SourceUnavailableError, match="sent nothing for 1 s"):
        fetch(shop, tmp_path, query="SELECT pg_sleep(60)::text AS c, 1 AS id", limits=SourceLimits(answer_s=1.0))
    with pytest.raises(SourceUnavailableError, match=r"statement timeout|within 1\.5 s"):
        fetch(shop, tmp_path, query="SELECT pg_sleep(60)::text AS c, 1 AS id", limits=SourceLimits(total_s=1.5))
    assert list(tmp_path.iterdir()) == []


def test_wrong_password_is_told_and_never_shown(shop: PostgresServer, tmp_path: Path) -> None:
    step = FetchStepUrl(url=f"postgresql://postgres:Kn0wn@/postgres?host={shop.folder}&table=t&by=id")
    with pytest.raises(SourceUnavailableError, match="password authentication failed") as caught:
        asyncio.run(LocalSourceReader().fetch(step, state=None, now=NOW, folder=tmp_path))
    assert "Kn0wn" not in str(caught.value)
    unread = FetchStepUrl(url="postgresql://postgres:Kn0wn@/postgres?host=/x&table=t&by=id&passfile=/x")
    with pytest.raises(MalformedError, match="passfile") as refused:
        asyncio.run(LocalSourceReader().fetch(unread, state=None, now=NOW, folder=tmp_path))
    assert "Kn0wn" not in str(refused.value)


def test_password_of_the_environment_goes_to_no_server_that_a_manifest_names(
    shop: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    step = FetchStepUrl(url=f"postgresql://postgres@/postgres?host={shop.folder}&table=t&by=id")
    with pytest.raises(SourceUnavailableError, match="no password supplied"):
        asyncio.run(LocalSourceReader().fetch(step, state=None, now=NOW, folder=tmp_path))


def test_line_is_encrypted_and_the_server_proved_as_the_url_asks(shop: PostgresServer, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    other, _ = make_certificate(tmp_path, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = str(shop.folder / ".s.PGSQL.5432")
    got = tmp_path / "got"
    got.mkdir()

    def fetch_over_tls(port: int, mode: str, roots: Path) -> Fetched | UpToDate:
        proof = f"sslmode={mode}&sslrootcert={roots}"
        url = f"postgresql://postgres:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres?{proof}"
        step = FetchStepUrl(url=f"{url}&query=SELECT+1+AS+id&by=id")
        return asyncio.run(LocalSourceReader().fetch(step, state=None, now=NOW, folder=got))

    with false_postgres(lambda connection: forward_encrypted(connection, context, server)) as port:
        assert rows_of(fetch_over_tls(port, "verify-full", certificate)) == [{"id": "1"}]
        with pytest.raises(SourceUnavailableError, match="certificate verify failed"):
            fetch_over_tls(port, "verify-full", other)
