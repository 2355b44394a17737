"""Messages of MQTT brokers as sources: on disk before they are acknowledged, each taken once (ING-33)."""

import asyncio
import json
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from odf_node.home_folder import HomeFolder
from odf_node.ingest.source_variables import fill_in
from odf_node.ports.sources import Fetched, SourceUnavailableError, UpToDate
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.events import FetchStepMqtt, MqttQos, MqttTopicSubscription, SourceState
from odf_protocol.timestamp import Timestamp
from odf_sources.mqtt import MESSAGES
from odf_sources.readers import mqtt as mqtt_reader
from support.false_postgres import false_postgres
from support.mqtt_broker import PASSWORD, USER, mqtt_broker, publish

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
LIMITS = SourceLimits(quiet_s=1.0, connect_s=20.0)
QUICK = SourceLimits(quiet_s=0.05, connect_s=20.0)
"""Where nothing is expected, or what is expected does not come from the broker."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with mqtt_broker(tmp_path_factory.mktemp("mqtt")) as port:
        yield port


def fetch(
    port: int, folder: Path, state: SourceState | None = None, *, topics: tuple[str, ...] = ("a/b",),
    password: str = "${{ env.MQTT }}", limits: SourceLimits = LIMITS,
) -> Fetched | UpToDate:  # fmt: skip
    subscriptions = tuple(MqttTopicSubscription(path=each, qos=MqttQos.EXACTLY_ONCE) for each in topics)
    step = FetchStepMqtt(host="127.0.0.1", port=port, username=USER, password=password, topics=subscriptions)
    filled, got = fill_in(step, {"MQTT": PASSWORD}), folder / "got"
    got.mkdir(exist_ok=True)
    reader = LocalSourceReader(limits=limits, home=HomeFolder(folder))
    # A name for each test, as for each dataset.
    return asyncio.run(reader.fetch(filled, state=state, now=NOW, folder=got, session=folder.name[-20:]))


def lines_of(fetched: Fetched | UpToDate) -> list[str]:
    assert isinstance(fetched, Fetched)
    return fetched.path.read_text().splitlines()


def state_of(fetched: Fetched | UpToDate) -> SourceState:
    assert isinstance(fetched, Fetched)
    assert fetched.source_state is not None
    return fetched.source_state


# Each reconnection to messages that wait costs five seconds, which this broker waits before it hears anything.


def test_what_is_published_between_two_pulls_comes_with_the_second_and_once(broker: int, tmp_path: Path) -> None:
    assert fetch(broker, tmp_path, limits=QUICK) == UpToDate()  # from now on the broker keeps what comes
    numbers = [str(number) for number in range(300)]
    publish(broker, '{"n": 1.50}', '{\n "n": 2\r\n}', "no json", "", *numbers)
    publish(broker, '{"n": 9}', topic="elsewhere")
    first = fetch(broker, tmp_path)
    assert isinstance(first, Fetched)
    assert lines_of(first) == ['{"n": 1.50}', '{  "n": 2  }', "no json", *numbers]
    assert (first.name, first.event_time, first.has_more) == (f"mqtt://127.0.0.1:{broker}", NOW, False)
    assert state_of(first).kind == MESSAGES
    assert json.loads(state_of(first).value) == {"topics": {"a/b": 1}, "last": 1}
    assert fetch(broker, tmp_path, state_of(first), limits=QUICK) == UpToDate()
    assert [path.name for path in (tmp_path / "messages").rglob("*.ndjson")] == []


def test_messages_that_no_block_has_are_given_again(broker: int, tmp_path: Path) -> None:
    fetch(broker, tmp_path, limits=QUICK)
    publish(broker, "1", "2")
    first = fetch(broker, tmp_path)
    # The first was not committed: the node was killed, or an engine failed.
    again = fetch(broker, tmp_path)
    assert (lines_of(again), state_of(again)) == (["1", "2"], state_of(first))
    assert isinstance(again, Fetched)
    assert again.has_more


def test_line_that_a_killed_reader_left_is_dropped(broker: int, tmp_path: Path) -> None:
    own = tmp_path / "messages" / tmp_path.name[-20:]
    own.mkdir(parents=True)
    (own / "7.ndjson").write_text('{"n": 1}\n{"n": ')
    (own / "8.ndjson").write_text('{"n')
    (own / "3.ndjson").write_text('{"n": 0}\n')
    state = SourceState(source_name="default", kind=MESSAGES, value='{"topics": {"a/b": 1}, "last": 5}')
    found = fetch(broker, tmp_path, state)
    assert lines_of(found) == ['{"n": 1}']
    assert json.loads(state_of(found).value)["last"] == 7
    assert {path.name for path in own.iterdir()} == {"lock", "7.ndjson"}


def test_topics_follow_the_manifest(broker: int, tmp_path: Path) -> None:
    fetch(broker, tmp_path, topics=("r/1",), limits=QUICK)
    state = SourceState(source_name="default", kind=MESSAGES, value='{"topics": {"r/1": 1}, "last": 0}')
    assert fetch(broker, tmp_path, state, topics=("r/2",), limits=QUICK) == UpToDate()
    publish(broker, "left", topic="r/1")
    publish(broker, "new", topic="r/2")
    assert lines_of(fetch(broker, tmp_path, state, topics=("r/2",))) == ["new"]


def test_subscription_that_stands_is_not_repeated_with_what_is_retained(tmp_path: Path) -> None:
    # By a script, as the broker of the other tests gives what is retained to whoever comes back.
    heard = bytearray()

    def go_on(connection: socket.socket) -> None:
        connection.recv(8192)
        connection.sendall(b"\x20\x02\x01\x00")  # the session is known
        while chunk := connection.recv(8192):
            heard.extend(chunk)

    state = SourceState(source_name="default", kind=MESSAGES, value='{"topics": {"a/b": 1}, "last": 5}')
    with false_postgres(go_on) as port:
        assert fetch(port, tmp_path, state, limits=QUICK) == UpToDate()
    assert bytes(heard) == b"\xe0\x00"  # the farewell alone


def test_wrong_password_is_told_and_never_shown(broker: int, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="rejects") as caught:
        fetch(broker, tmp_path, password="Kn0wn")
    assert "Kn0wn" not in str(caught.value)


def no_progress(connection: socket.socket) -> None:
    while connection.recv(8192):
        pass


def send_one_endless_message(connection: socket.socket) -> None:
    connection.recv(8192)
    connection.sendall(b"\x20\x02\x00\x00")
    connection.sendall(b"\x30\xff\xff\xff\x7f\x00\x03a/b")
    piece = b"x" * 1024 * 1024
    while True:
        connection.sendall(piece)


def send_noise(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)


def test_reader_that_was_stopped_after_a_look_takes_what_came_meanwhile(
    broker: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {
        "host": "127.0.0.1",
        "port": broker,
        "username": USER,
        "password": PASSWORD,
        "session": "stopped",
        "topics": {"stopped": 1},
        "known_topics": {},
        "messages": 10,
        "size_bytes": 1000,
        "max_s": 600.0,
        "quiet_s": 0.05,
        "wait_s": 60.0,
    }
    with (tmp_path / "got").open("ab") as file:
        session, ahead_s = mqtt_reader._Session(request, file), 0.0
        really_look, clock = session._look, time.monotonic

        def look() -> None:
            nonlocal ahead_s
            has_subscribed = session._is_known is not None and not session._awaited
            really_look()
            if has_subscribed and not ahead_s:
                publish(broker, "late", topic="stopped")
                assert select.select([session._client.socket()], [], [], 60)[0]
                ahead_s = 60.0

        monkeypatch.setattr(session, "_look", look)
        monkeypatch.setattr(mqtt_reader, "time", SimpleNamespace(monotonic=lambda: clock() + ahead_s))
        session.read()
    assert (tmp_path / "got").read_text() == "late\n"


@pytest.mark.parametrize("serve", [no_progress, send_one_endless_message, send_noise])
def test_false_broker_is_bounded_and_told(serve, tmp_path: Path) -> None:
    limits = SourceLimits(quiet_s=1.0, connect_s=2.0, total_s=60.0)
    with false_postgres(serve) as port, pytest.raises(SourceUnavailableError, match="does not answer"):
        fetch(port, tmp_path, limits=limits)
    assert list((tmp_path / "got").iterdir()) == []
