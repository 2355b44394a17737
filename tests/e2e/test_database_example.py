"""The example of a database: each pull brings what changed since the one before (ING-30)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.nodes import RealNode
from support.postgres_server import PASSWORD, PostgresServer, postgres_server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "database"


def run(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(statements)


def test_database_is_followed_by_its_column(tmp_path: Path) -> None:
    shop, node = tmp_path / "shop.db", RealNode(tmp_path / "home", has_engine=True)
    place = {"SHOP_DB": str(shop)}
    run(shop, (EXAMPLE / "shop.sql").read_text())
    node.must("add", str(EXAMPLE / "orders.yaml"))
    node.must("pull", "shop.orders", environment=place)
    assert changes(node) == [(0, 1, "12.50", 1), (0, 2, "40.00", 2), (0, 3, "7.25", 3)]

    again = node.must("pull", "shop.orders", environment=place)
    assert "up to date" in again.out + again.err
    for statement in (EXAMPLE / "README.md").read_text().split("```sql\n")[1:]:
        run(shop, statement.partition("```")[0])
    node.must("pull", "shop.orders", environment=place)

    # What was deleted, nobody told.
    assert changes(node)[3:] == [(2, 2, "40.00", 2), (3, 2, "45.00", 4), (0, 4, "19.90", 5)]
    head = node.must("log", "shop.orders", "-o", "yaml", "-n", "1").out
    assert "odf-node/table-cursor" in head


def test_database_of_postgresql_is_followed_by_the_numbers_of_its_transactions(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home", has_engine=True)
    with postgres_server(tmp_path) as server:
        server.run("CREATE DATABASE shop")
        run_in_shop(server, (EXAMPLE / "shop-postgresql.sql").read_text().replace("change me", PASSWORD))
        place = {"SHOP_SERVER": "", "SHOP_PASSWORD": PASSWORD}
        manifest = (EXAMPLE / "orders-postgresql.yaml").read_text().replace("?table", f"?host={server.folder}&table")
        (tmp_path / "orders.yaml").write_text(manifest)
        node.must("add", str(tmp_path / "orders.yaml"))
        node.must("pull", "shop.orders", environment=place)
        statements = (EXAMPLE / "README.md").read_text().split("```sql\n")[1].partition("```")[0]
        run_in_shop(server, statements)
        node.must("pull", "shop.orders", environment=place)
    rows = [change[:3] for change in changes(node)]
    assert rows[:3] == [(0, 1, "12.50"), (0, 2, "40.00"), (0, 3, "7.25")]
    assert rows[3:] == [(2, 2, "40.00"), (3, 2, "45.00"), (0, 4, "19.90")]
    kept = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(PASSWORD.encode() in each for each in kept)


def run_in_shop(server: PostgresServer, statements: str) -> None:
    with server.connect("shop") as connection:
        connection.execute(statements.encode())


def changes(node: RealNode) -> list[tuple]:
    rows = node.must("tail", "shop.orders", "-n", "100", "-o", "json").json()
    return [(row["op"], row["id"], row["amount"], row["version"]) for row in rows]
