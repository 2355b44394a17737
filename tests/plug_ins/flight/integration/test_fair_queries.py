"""A small query waits for no costly one, of others or of its own caller (FLIGHT-12)."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.flight as flight
import pytest

from odf_flight.messages import encode_message
from support.flight_node import FlightNode, serving_flight
from support.secretive_node import FRIEND_TOKEN, SecretiveNode

COSTLY = "SELECT sum(a.value * b.value) FROM range(1000000) a CROSS JOIN range(1000000) b"
SMALL = "SELECT count(*) AS n FROM shown.data"
MANY = 20
COSTLY_S = 50.0  # each costly one is given up then, and had no answer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlightNode]:
    made = SecretiveNode.create(tmp_path_factory.mktemp("fair"))
    with serving_flight(made) as found:
        yield found
    made.node.close()


def statement(sql: str) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(encode_message("CommandStatementQuery", query=sql))


def ask(served: FlightNode, sql: str, token: str | None, timeout_s: float) -> Any:
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    options = flight.FlightCallOptions(timeout=timeout_s, headers=headers)
    with flight.connect(served.url) as client:
        info = client.get_flight_info(statement(sql), options)
        return client.do_get(info.endpoints[0].ticket, options).read_all().to_pylist()


@pytest.mark.parametrize("token", [None, FRIEND_TOKEN], ids=["of-the-same-address", "of-another"])
def test_small_query_is_answered_while_twenty_costly_ones_wait(
    served: FlightNode, tmp_path: Path, token: str | None
) -> None:
    ended, threads = list[str](), list[threading.Thread]()

    def ask_costly() -> None:
        try:
            ask(served, COSTLY, None, COSTLY_S)
        except flight.FlightError as error:
            ended.append(str(error))

    for _ in range(MANY):
        threads.append(threading.Thread(target=ask_costly))
        threads[-1].start()
    try:
        assert ask(served, SMALL, token, COSTLY_S - 1) == [{"n": 1}]
        assert not [each for each in ended if "deadline" not in each.lower()]
    finally:
        for thread in threads:
            thread.join()
