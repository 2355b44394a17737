"""Arrow Flight SQL, asked by the real ADBC driver over a real socket (FLIGHT-1 to FLIGHT-13)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as adbc
import adbc_driver_manager
import pytest

from odf_node.configuration.declaration import Tls
from support.daemons import make_certificate
from support.flight_node import FlightNode, serving_flight
from support.secretive_node import FRIEND_TOKEN, THIEF_TOKEN, SecretiveNode

ROOTS = adbc_driver_flightsql.DatabaseOptions.TLS_ROOT_CERTS.value
HEADER = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value


@contextmanager
def connected(served: FlightNode, token: str | None = None) -> Iterator[Any]:
    options = {} if token is None else {HEADER: f"Bearer {token}"}
    with adbc.connect(served.url, db_kwargs=options, autocommit=True) as connection:
        yield connection


def ask(served: FlightNode, sql: str, token: str | None = None) -> Any:
    with connected(served, token) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


def listed(served: FlightNode, token: str | None = None, **asked: Any) -> dict[str, Any]:
    with connected(served, token) as connection:
        rows = connection.adbc_get_objects(**asked).read_all().to_pylist()
    return {
        table["table_name"]: table
        for catalog in rows
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    }


def test_client_asks_and_reads_arrow_flight_1(served: FlightNode) -> None:
    answer = ask(served, 'SELECT city, people FROM "shown.data" ORDER BY people')
    assert answer.to_pylist() == [{"city": "Bern", "people": 3}]


def ask_engine(served: FlightNode, engine: str, sql: str) -> Any:
    named = {f"{adbc_driver_flightsql.DatabaseOptions.RPC_CALL_HEADER_PREFIX.value}x-odf-engine": engine}
    with (
        adbc.connect(served.url, db_kwargs=named, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


def test_engine_that_is_not_here_is_told_flight_7(served: FlightNode) -> None:
    assert ask_engine(served, "datafusion", "SELECT arrow_typeof(1) AS t")["t"].to_pylist() == ["Int64"]
    with pytest.raises(adbc_driver_manager.Error, match="engine 'other' is not installed"):
        ask_engine(served, "other", "SELECT 1")
    with pytest.raises(adbc_driver_manager.Error, match="expected the name of one engine"):
        ask_engine(served, "x" * 1_000, "SELECT 1")


@pytest.mark.spark
def test_engine_that_is_named_answers_in_its_own_sql_flight_7(served: FlightNode) -> None:
    assert ask_engine(served, "spark", 'SELECT "city" AS t FROM `shown.data`')["t"].to_pylist() == ["city"]


def test_encrypted_port_shows_the_certificate_and_speaks_to_nobody_else_flight_1(
    made: SecretiveNode, tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path)
    stranger, _ = make_certificate(tmp_path, "stranger")
    with serving_flight(made, tls=Tls(certificate=certificate, key=key)) as served:
        assert served.url.startswith("grpc+tls://")
        sql = 'SELECT city FROM "shown.data"'
        roots = {ROOTS: certificate.read_text()}
        with adbc.connect(served.url, db_kwargs=roots, autocommit=True) as known, known.cursor() as cursor:
            cursor.execute(sql)
            assert cursor.fetch_arrow_table().to_pylist() == [{"city": "Bern"}]
        for url, options in (
            (served.url, {ROOTS: stranger.read_text()}),
            (served.url, {}),
            (served.url.replace("grpc+tls", "grpc"), {}),
        ):
            with (
                pytest.raises(adbc_driver_manager.Error),
                adbc.connect(url, db_kwargs=options, autocommit=True) as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute(sql)


def test_client_lists_what_it_may_read_flight_5(served: FlightNode) -> None:
    assert sorted(listed(served)) == ["shown.data", "shown.data__state"]
    found = listed(served, FRIEND_TOKEN)
    assert sorted(found) == ["hidden.data", "hidden.data__state", "shown.data", "shown.data__state"]
    assert {name: table["table_type"] for name, table in found.items()} == {
        "hidden.data": "TABLE",
        "hidden.data__state": "VIEW",
        "shown.data": "TABLE",
        "shown.data__state": "VIEW",
    }
    columns = [column["column_name"] for column in found["shown.data__state"]["table_columns"]]
    assert columns == ["event_time", "city", "people"]


def test_listed_columns_are_those_of_the_answer_flight_6(served: FlightNode) -> None:
    with connected(served) as connection:
        for name in ("shown.data", "shown.data__state"):
            reported = connection.adbc_get_table_schema(name)
            assert reported.remove_metadata() == ask(served, f'SELECT * FROM "{name}"').schema


def test_hidden_dataset_is_told_by_nothing_flight_4(served: FlightNode) -> None:
    for token in (None, THIEF_TOKEN):
        reported = []
        for name in ("hidden.data", "absent.data"):
            with pytest.raises(adbc_driver_manager.Error) as failed:
                ask(served, f'SELECT * FROM "{name}"', token)
            reported.append((str(failed.value).replace(name, "NAME"), failed.value.status_code))
        assert reported[0] == reported[1]
        assert "there is no dataset or table NAME" in reported[0][0]
    assert "Oslo" in ask(served, 'SELECT city FROM "hidden.data"', FRIEND_TOKEN)["city"].to_pylist()


def test_token_that_opens_nothing_is_rejected_flight_3(served: FlightNode) -> None:
    for token in ("odf_unknown", "", "x" * 600, f"{FRIEND_TOKEN}x"):
        with pytest.raises(adbc_driver_manager.Error, match="unknown, expired or revoked"):
            ask(served, "SELECT 1", token)


def test_query_that_fails_says_why_in_one_line_flight_10(served: FlightNode) -> None:
    for sql, reason in (
        ("SELECT", "Expected"),
        ("SELECT nothing FROM shown.data", "nothing"),
        ("SELECT 1; SELECT 2", "single SQL statement"),
        ("INSERT INTO shown.data SELECT * FROM shown.data", "query"),
        ("SELECT 1 " + "x" * 10_000_000, "at most"),
        ("SELECT '" + "x" * 300_000 + "'", "at most"),
    ):
        with pytest.raises(adbc_driver_manager.Error) as failed:
            ask(served, sql)
        text = str(failed.value)
        assert reason in text
        assert "\n" not in text
        assert ".py" not in text
        assert str(served.made.node.home.folder.path) not in text
