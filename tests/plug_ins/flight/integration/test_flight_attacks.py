"""What strangers may try on the port of Flight SQL (FLIGHT-2, FLIGHT-7, FLIGHT-9, FLIGHT-10, FLIGHT-12)."""

import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from google.protobuf import any_pb2
from hypothesis import given
from hypothesis import strategies as st

from odf_flight import listener
from odf_flight.answers import PreparedStatements
from odf_flight.messages import PACKAGE, READ, REJECTED, decode_message, encode_message
from odf_node.configuration.declaration import AccessSettings, LimitSettings
from odf_node.ports.peer_errors import AddressInUseError
from odf_protocol.errors import MalformedError, UnsupportedError
from support.daemons import daemon
from support.flight_node import FlightNode, serving_flight
from support.secretive_node import FRIEND_TOKEN, THIEF_TOKEN, SecretiveNode

WIDE = "SELECT repeat('x', 100000) AS text FROM range(2000)"
"""Rows of more bytes than are under way to somebody who does not read."""
ONE_LINE = (flight.FlightServerError, flight.FlightUnavailableError)


@contextmanager
def connected(served: FlightNode) -> Iterator[Any]:
    with flight.connect(served.url) as client:
        yield client


def shown(token: str | None = None) -> flight.FlightCallOptions:
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return flight.FlightCallOptions(timeout=120, headers=headers)


def command(name: str, **fields: Any) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(encode_message(name, **fields))


def packed(name: str, raw: bytes = b"", prefix: str = "type.googleapis.com/") -> bytes:
    return any_pb2.Any(type_url=f"{prefix}{PACKAGE}.{name}", value=raw).SerializeToString()


def prepared(client: Any, sql: str, token: str | None = None) -> bytes:
    body = encode_message("ActionCreatePreparedStatementRequest", query=sql)
    (result,) = client.do_action(flight.Action("CreatePreparedStatement", body), shown(token))
    handle: bytes = decode_message(result.body.to_pybytes()).fields.prepared_statement_handle
    return handle


def put(client: Any, descriptor: flight.FlightDescriptor) -> None:
    writer, _ = client.do_put(descriptor, pa.schema([]), shown(FRIEND_TOKEN))
    writer.close()


def require_plain(error: BaseException, served: FlightNode) -> None:
    """Nothing of this machine or program is told."""
    text = str(error)
    assert "Traceback" not in text
    assert ".py" not in text
    assert "\n" not in text
    assert str(served.made.node.home.folder.path) not in text


@given(st.binary(max_size=200) | st.builds(packed, st.sampled_from([*READ, *REJECTED, "Nothing"]), st.binary()))
def test_garbage_is_a_message_or_rejected_flight_2(raw: bytes) -> None:
    with suppress(MalformedError, UnsupportedError):
        assert decode_message(raw).name in READ


def test_garbage_is_rejected_in_one_line_by_every_call_flight_2(served: FlightNode) -> None:
    before = served.made.holdings()
    garbage = [b"", b"\0", b"\xff" * 40, packed("CommandStatementQuery", b"\x0a\x02\xff\xfe"), packed("Nothing")]
    garbage += [packed("CommandGetTables", prefix=""), packed("CommandStatementQuery", b"\x0a\xff\xff\xff\xff\x0f")]
    garbage += [b"x" * 2_000_000, packed("TicketStatementQuery", b"\x0a\x01x")]
    with connected(served) as client:
        for raw in garbage:
            descriptor = flight.FlightDescriptor.for_command(raw)
            for call in (
                lambda each=descriptor: client.get_flight_info(each, shown()),
                lambda each=raw: client.do_get(flight.Ticket(each), shown()).read_all(),
                lambda each=raw: list(client.do_action(flight.Action("CreatePreparedStatement", each), shown())),
                lambda each=raw: list(client.do_action(flight.Action("ClosePreparedStatement", each), shown())),
                lambda each=raw: list(client.do_action(flight.Action("\n/x", each), shown())),
            ):
                with pytest.raises(ONE_LINE) as failed:
                    call()
                require_plain(failed.value, served)
        with pytest.raises(ONE_LINE) as failed:
            client.get_flight_info(flight.FlightDescriptor.for_path("a", "b"), shown())
        require_plain(failed.value, served)
        with pytest.raises(ONE_LINE) as failed:
            list(client.list_flights(options=shown()))
        require_plain(failed.value, served)
        with pytest.raises(NotImplementedError) as unanswered:
            client.get_schema(command("CommandStatementQuery", query="SELECT 1"), shown())
        assert "odf_node" not in str(unanswered.value)
    assert served.made.holdings() == before


@pytest.mark.parametrize("name", sorted(REJECTED))
def test_what_would_change_something_is_rejected_in_its_own_words_flight_9(served: FlightNode, name: str) -> None:
    before = served.made.holdings()
    with connected(served) as client:
        for call in (
            lambda: client.get_flight_info(flight.FlightDescriptor.for_command(packed(name)), shown(FRIEND_TOKEN)),
            lambda: list(client.do_action(flight.Action(name[6:-7], packed(name)), shown(FRIEND_TOKEN))),
        ):
            with pytest.raises(ONE_LINE, match=REJECTED[name]) as failed:
                call()
            require_plain(failed.value, served)
        descriptor = flight.FlightDescriptor.for_command(packed(name))
        with pytest.raises(ONE_LINE, match=REJECTED[name]):
            put(client, descriptor)
        asked = command("CommandStatementQuery", query="SELECT 1", transaction_id=b"1")
        with pytest.raises(ONE_LINE, match="transaction"):
            client.get_flight_info(asked, shown(FRIEND_TOKEN))
    assert served.made.holdings() == before


def test_ticket_and_statement_of_another_are_none_flight_7(served: FlightNode) -> None:
    with connected(served) as client:
        info = client.get_flight_info(
            command("CommandStatementQuery", query='SELECT city FROM "hidden.data"'), shown(FRIEND_TOKEN)
        )
        handle = prepared(client, 'SELECT city FROM "hidden.data"', FRIEND_TOKEN)
        ticket = info.endpoints[0].ticket
        reported = []
        for token in (None, THIEF_TOKEN):
            for made_up in (ticket, flight.Ticket(encode_message("TicketStatementQuery", statement_handle=b"x" * 32))):
                with pytest.raises(ONE_LINE) as failed:
                    client.do_get(made_up, shown(token)).read_all()
                reported.append(str(failed.value))
        assert reported == [reported[0]] * len(reported)
        for token in (None, THIEF_TOKEN):
            closing_it = encode_message("ActionClosePreparedStatementRequest", prepared_statement_handle=handle)
            list(client.do_action(flight.Action("ClosePreparedStatement", closing_it), shown(token)))
            with pytest.raises(ONE_LINE, match="one that was given to you"):
                client.get_flight_info(
                    command("CommandPreparedStatementQuery", prepared_statement_handle=handle), shown(token)
                )
        assert "Oslo" in client.do_get(ticket, shown(FRIEND_TOKEN)).read_all()["city"].to_pylist()
        asked = command("CommandPreparedStatementQuery", prepared_statement_handle=handle)
        assert client.get_flight_info(asked, shown(FRIEND_TOKEN)).total_records == 6


def test_revoked_token_opens_nothing_any_more_flight_3(tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    with closing(made.node), serving_flight(made) as served, connected(served) as client:
        asked = command("CommandGetTables")
        ticket = client.get_flight_info(asked, shown(FRIEND_TOKEN)).endpoints[0].ticket
        assert client.do_get(ticket, shown(FRIEND_TOKEN)).read_all().num_rows == 4
        # The list is made for whoever fetches it.
        assert client.do_get(ticket, shown()).read_all().num_rows == 2
        made.node.store.revoke_token(FRIEND_TOKEN[4:9], made.node.now())
        with pytest.raises(flight.FlightUnauthenticatedError, match="revoked"):
            client.do_get(ticket, shown(FRIEND_TOKEN)).read_all()


class Greeting(flight.ClientAuthHandler):  # type: ignore[misc]
    """As JDBC clients begin: with a call that has nothing but their token."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        pass

    def get_token(self) -> bytes:
        return b""


def test_greeting_passes_with_a_token_that_opens_something_and_gives_none_out_flight_3(served: FlightNode) -> None:
    for token, datasets in ((FRIEND_TOKEN, 4), (None, 2)):
        with connected(served) as client:
            client.authenticate(Greeting(), shown(token))
            ticket = client.get_flight_info(command("CommandGetTables"), shown(token)).endpoints[0].ticket
            assert client.do_get(ticket, shown(token)).read_all().num_rows == datasets
            # Who greeted is a stranger all the same in a call that shows nothing.
            assert client.do_get(ticket, shown()).read_all().num_rows == 2
    with connected(served) as client, pytest.raises(flight.FlightUnauthenticatedError, match="unknown") as failed:
        client.authenticate(Greeting(), shown("odf_unknown"))
    require_plain(failed.value, served)
    with connected(served) as client, pytest.raises(flight.FlightUnauthenticatedError, match="unknown"):
        client.authenticate_basic_token("somebody", FRIEND_TOKEN)


def test_stranger_sees_nothing_where_nothing_is_for_everybody_flight_4(tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    with (
        closing(made.node),
        serving_flight(made, access=AccessSettings(anonymous=False)) as served,
        connected(served) as client,
    ):
        ticket = client.get_flight_info(command("CommandGetTables"), shown()).endpoints[0].ticket
        assert client.do_get(ticket, shown()).read_all().num_rows == 0
        with pytest.raises(ONE_LINE, match="there is no dataset or table shown"):
            client.get_flight_info(command("CommandStatementQuery", query='SELECT * FROM "shown.data"'), shown())


LONG = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.value * b.value % 7 = 3"


def test_whoever_goes_away_ends_their_question_flight_12(served: FlightNode) -> None:
    with connected(served) as client:
        begun_s = time.monotonic()
        with pytest.raises(flight.FlightTimedOutError):
            client.get_flight_info(command("CommandStatementQuery", query=LONG), flight.FlightCallOptions(timeout=3))
        # The next question of the same caller has its turn at once, in an engine that is not busy.
        info = client.get_flight_info(command("CommandStatementQuery", query="SELECT 1 AS one"), shown())
        assert client.do_get(info.endpoints[0].ticket, shown()).read_all().to_pylist() == [{"one": 1}]
        assert time.monotonic() - begun_s < 50


def test_answer_that_is_too_long_fails_flight_10(served: FlightNode) -> None:
    with connected(served) as client, pytest.raises(ONE_LINE, match="limit") as failed:
        client.get_flight_info(command("CommandStatementQuery", query="SELECT value FROM range(20000000)"), shown())
    require_plain(failed.value, served)


def test_wide_rows_are_sent_in_small_parts_flight_8(served: FlightNode) -> None:
    sql = "SELECT repeat('x', 100000) AS text FROM range(300)"
    with connected(served) as client:
        info = client.get_flight_info(command("CommandStatementQuery", query=sql), shown())
        sizes = [chunk.data.nbytes for chunk in client.do_get(info.endpoints[0].ticket, shown())]
    assert info.total_records == 300
    assert sum(sizes) >= 30_000_000
    assert max(sizes) <= 4 << 20


def test_many_ask_at_once_and_each_has_its_own_answer_flight_12(served: FlightNode) -> None:
    answers: dict[int, Any] = {}

    def ask(number: int) -> None:
        token = FRIEND_TOKEN if number % 2 else THIEF_TOKEN
        with connected(served) as client:
            try:
                asked = command("CommandStatementQuery", query=f"SELECT {number} AS number")
                info = client.get_flight_info(asked, shown(token))
                answers[number] = client.do_get(info.endpoints[0].ticket, shown(token)).read_all()["number"][0].as_py()
            except flight.FlightUnavailableError as error:
                answers[number] = str(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    right = [number for number, answer in answers.items() if answer == number]
    assert len(answers) == 30
    assert len(right) >= 16
    assert all("wait" in answer for number, answer in answers.items() if number not in right)


def test_no_more_calls_run_than_may_flight_12(tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    with (
        closing(made.node),
        serving_flight(made, limits=LimitSettings(requests=1)) as served,
        connected(served) as client,
        connected(served) as other,
    ):

        def keep_busy() -> None:
            while True:
                try:
                    client.get_flight_info(
                        command("CommandStatementQuery", query=LONG), flight.FlightCallOptions(timeout=8)
                    )
                except flight.FlightTimedOutError:
                    return
                except flight.FlightUnavailableError:
                    continue  # the other had the place

        thread = threading.Thread(target=keep_busy)
        thread.start()
        refused = None
        while refused is None and thread.is_alive():
            try:
                other.get_flight_info(command("CommandGetTables"), shown())
            except flight.FlightUnavailableError as error:
                refused = str(error)
        assert "come later" in str(refused)
        thread.join(60)
        # Its place is given back when it ends.
        while True:
            try:
                other.get_flight_info(command("CommandGetTables"), shown())
                break
            except flight.FlightUnavailableError:
                time.sleep(0.02)


@contextmanager
def from_another_address(served: FlightNode) -> Iterator[str]:
    """Give an address at which whoever connects comes to the node from 127.0.0.2."""
    host, _, port = served.url.partition("://")[2].rpartition(":")

    def carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        inside, _ = listening.accept()
        outside = socket.create_connection((host, int(port)), source_address=("127.0.0.2", 0))
        with inside, outside:
            back = threading.Thread(target=carry, args=(outside, inside))
            back.start()
            carry(inside, outside)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept)
        thread.start()
        yield f"grpc://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(60)
        assert not thread.is_alive()


def test_no_more_calls_of_one_address_run_than_may_and_others_go_on_flight_13(tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    with (
        closing(made.node),
        serving_flight(made, limits=LimitSettings(address_requests=1)) as served,
        connected(served) as client,
        connected(served) as same,
        from_another_address(served) as url,
        flight.connect(url) as other,  # the one that it is for
    ):
        other.get_flight_info(command("CommandGetTables"), shown())
        info = client.get_flight_info(command("CommandStatementQuery", query=WIDE), shown())
        reader = client.do_get(info.endpoints[0].ticket, shown())
        reader.read_chunk()  # and no more: the call runs
        for ask in (
            lambda: same.get_flight_info(command("CommandGetTables"), shown()),
            lambda: same.get_flight_info(command("CommandGetTables"), shown(FRIEND_TOKEN)),
            lambda: list(same.list_actions(shown())),
            lambda: list(same.list_flights(options=shown())),
        ):
            with pytest.raises(flight.FlightUnavailableError, match="of your address run"):
                ask()
        assert other.get_flight_info(command("CommandGetTables"), shown()).endpoints
        reader.cancel()
        deadline = time.monotonic() + 60
        while True:  # its place is given back when it ends
            with suppress(flight.FlightUnavailableError):
                same.get_flight_info(command("CommandGetTables"), shown())
                break
            assert time.monotonic() < deadline


def test_client_that_reads_nothing_holds_up_no_end_flight_12(tmp_path: Any) -> None:
    settings = "[listen]\nport = 0\nflight_port = 0\n[engines]\nquery = 'datafusion'\n[shutdown]\ngrace_seconds = 1\n"
    with daemon(tmp_path / "home", settings=settings) as running:
        client = flight.connect(running.wait_for("flight")[0]["url"])
        info = client.get_flight_info(command("CommandStatementQuery", query=WIDE), shown())
        reader = client.do_get(info.endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows > 0
        running.process.terminate()
        assert running.process.wait(60) == 0
        assert running.log("stopped")
    assert list((tmp_path / "home" / "engines").glob("process-*")) == []


def knock(served: FlightNode) -> socket.socket:
    """Connect, and begin as clients do."""
    host, _, port = served.url.partition("://")[2].rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
    return connection


def is_let_in(connection: socket.socket) -> bool:
    """The server's own settings are the first that it sends."""
    with suppress(ConnectionError):
        return connection.recv(1) != b""
    return False


@pytest.mark.parametrize(
    "limits", [LimitSettings(address_connections=3), LimitSettings(connections=3)], ids=["address", "all"]
)
def test_connections_beyond_the_limit_are_closed_and_others_go_on_flight_13(
    tmp_path: Any, limits: LimitSettings
) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    with closing(made.node), serving_flight(made, limits=limits) as served:
        kept = [knock(served) for _ in range(3)]
        assert [is_let_in(each) for each in kept] == [True] * 3
        with closing(knock(served)) as refused:
            assert not is_let_in(refused)
        assert 'reason="flight connections"} 1.0' in served.live.metrics.render()
        kept.pop().close()
        deadline = time.monotonic() + 60
        while True:  # the place is free when its end was noticed
            with closing(knock(served)) as another:
                if is_let_in(another):
                    break
            assert time.monotonic() < deadline
        for each in kept:
            each.close()


def test_whoever_says_nothing_is_gone_flight_13(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "FIRST_REQUEST_S", 0.2)
    made = SecretiveNode.create(tmp_path / "node")
    with closing(made.node), serving_flight(made) as served:
        host, _, port = served.url.partition("://")[2].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as silent:
            assert silent.recv(1) == b""


def test_flood_of_bytes_ends_its_connection_alone_flight_13(tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    with closing(made.node), serving_flight(made) as served, connected(served) as other:
        assert other.get_flight_info(command("CommandGetTables"), shown()).endpoints
        with connected(served) as client, pytest.raises(flight.FlightError):
            client.get_flight_info(flight.FlightDescriptor.for_command(b"x" * (listener.MAX_BYTES * 2)), shown())
        assert 'reason="flight bytes"}' in served.live.metrics.render()
        assert other.get_flight_info(command("CommandGetTables"), shown()).endpoints


BOMB: Final = """
import sys
import grpc

size = int(sys.argv[2])
rest, length = size, b""
while rest > 127:
    length, rest = length + bytes([rest % 128 + 128]), rest // 128
channel = grpc.insecure_channel(sys.argv[1].partition("://")[2], options=[("grpc.max_send_message_length", -1)])
ask = channel.unary_unary("/arrow.flight.protocol.FlightService/GetFlightInfo")
body = b"\\x08\\x02\\x12" + length + bytes([rest]) + bytes(size)
try:
    ask(body, compression=grpc.Compression.Gzip, timeout=60)
except grpc.RpcError as error:
    print(error.code().name)
"""
"""A descriptor whose command is so many zeros, packed."""


def test_packed_message_is_not_unpacked_flight_14(served: FlightNode) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sent = subprocess.run(
        [sys.executable, "-c", BOMB, served.url, "300000000"], capture_output=True, text=True, timeout=120, check=True
    )
    assert sent.stdout.strip() == "UNAVAILABLE"
    assert 'reason="flight packed messages"} 1.0' in served.live.metrics.render()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000
    with connected(served) as other:
        assert other.get_flight_info(command("CommandGetTables"), shown()).endpoints


@pytest.mark.parametrize("pattern", ["x" * 1001, "%" * 900_000])
def test_pattern_longer_than_any_name_is_rejected_flight_14(served: FlightNode, pattern: str) -> None:
    asked = command("CommandGetTables", table_name_filter_pattern=pattern)
    with connected(served) as client:
        (endpoint,) = client.get_flight_info(asked, shown(FRIEND_TOKEN)).endpoints
        with pytest.raises(ONE_LINE, match="at most 1000 characters") as refused:
            client.do_get(endpoint.ticket, shown(FRIEND_TOKEN)).read_all()
        require_plain(refused.value, served)
        fits = command("CommandGetTables", table_name_filter_pattern="%a%" * 300)
        (endpoint,) = client.get_flight_info(fits, shown(FRIEND_TOKEN)).endpoints
        assert client.do_get(endpoint.ticket, shown(FRIEND_TOKEN)).read_all().num_rows == 0


def test_texts_of_statements_are_kept_up_to_a_bound_flight_14() -> None:
    statements = PreparedStatements()
    long = "\N{GRINNING FACE}" * 200_000
    own = [statements.put("one", long) for _ in range(10)]
    assert [statements.find(each, "one") is None for each in own] == [True] * 5 + [False] * 5
    for number in range(30):
        for _ in range(5):
            statements.put(str(number), long)
    last = statements.put("one", "SELECT 1")
    assert statements.find(own[-1], "one") is None
    assert statements.find(last, "one") == "SELECT 1"


def test_quota_of_one_is_not_that_of_another_and_calls_are_counted_flight_13(tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    limits = LimitSettings(peer_requests_per_minute=2)
    with closing(made.node), serving_flight(made, limits=limits) as served, connected(served) as client:
        for _ in range(2):
            client.get_flight_info(command("CommandGetTables"), shown(FRIEND_TOKEN))
        with pytest.raises(flight.FlightUnavailableError, match="your share of requests a minute; come back in"):
            client.get_flight_info(command("CommandGetTables"), shown(FRIEND_TOKEN))
        assert client.get_flight_info(command("CommandGetTables"), shown()).endpoints
        figures = served.live.metrics.render()
        assert 'route="flight/get_flight_info"' in figures
        assert 'turned_away_total{reason="requests"} 1.0' in figures


def test_port_that_is_taken_is_told_flight_1(served: FlightNode, tmp_path: Any) -> None:
    made = SecretiveNode.create(tmp_path / "node")
    port = int(served.url.rpartition(":")[2])
    with closing(made.node), pytest.raises(AddressInUseError), serving_flight(made, port=port):
        pass
