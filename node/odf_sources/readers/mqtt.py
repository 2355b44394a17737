"""Messages of a broker, as far as it gives them, on disk before they are acknowledged.

Source: clause ING-33 in ``spec/plug-ins/sources.md``; MQTT 3.1.1 sections 3.1.2.4 (sessions), 3.3
(PUBLISH), 4.4 (delivery).
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.reasoncodes import ReasonCode

from odf_node.source_readers import SourceError, fault

MEMORY_BYTES: Final = 1024**3  # guess: a message of 256 MiB, which is the largest there is, and copies of it

_KEEPALIVE_S: Final = 60  # as the library
_LOOK_S: Final = 0.01  # guess: so long nothing comes when a broker waits to hear that messages have arrived
_MAX_PENDING_BYTES: Final = 1024**2  # guess: written and synchronised at once
_FAREWELL_S: Final = 5.0  # guess: for the last acknowledgements; what they miss is sent again
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")
"""In JSON they stand between values only, where a space is the same."""


def answer(request: dict[str, Any], _content: BinaryIO) -> dict[str, Any]:
    """Append messages to the file that a request names; return whether there are more, or what is wrong."""
    try:
        with Path(request["path"]).open("ab") as file:
            return {"has_more": _Session(request, file).read()}
    except (SourceError, OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
    except MemoryError:
        reason = "a message that does not fit into memory"
    return fault("unavailable", reason, [request["password"]])


class _Session:
    """A session that the broker keeps between readers, and goes on with."""

    def __init__(self, request: dict[str, Any], file: BinaryIO) -> None:
        self._request, self._file = request, file
        self._pending: list[mqtt.MQTTMessage] = []
        self._pending_bytes = self._read_bytes = self._messages = 0
        self._is_known: bool | None = None
        self._rejection: str | None = None
        self._awaited: set[int] = set()
        self._client = client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=request["session"],
            clean_session=False,
            protocol=mqtt.MQTTv311,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        client.connect_timeout = request["wait_s"]
        if request["username"] is not None:
            client.username_pw_set(request["username"], request["password"])
        client.on_connect = self._note_connection
        client.on_message = self._note_message
        client.on_subscribe = self._note_subscription
        client.on_unsubscribe = lambda _client, _data, mid, *_: self._awaited.discard(mid)

    def read(self) -> bool:
        """Read until the broker is quiet, or until it is enough for once; return whether it may have more."""
        self._client.connect(self._request["host"], self._request["port"], _KEEPALIVE_S)
        self._wait(lambda: self._is_known is not None)
        self._subscribe()
        self._wait(lambda: not self._awaited)
        has_more = self._receive()
        self._keep()
        self._client.disconnect()
        give_up_at = time.monotonic() + _FAREWELL_S
        while self._client.want_write() and time.monotonic() < give_up_at:
            self._client.loop_write()
        return has_more

    def _receive(self) -> bool:
        began = heard = time.monotonic()
        while True:
            # Before the look: who was stopped behind it has not seen what came meanwhile.
            before, now = self._messages, time.monotonic()
            self._look()
            if self._messages > before:
                heard = time.monotonic()
            if self._messages == before or self._pending_bytes > _MAX_PENDING_BYTES:
                self._keep()
            is_enough = self._messages >= self._request["messages"] or self._read_bytes >= self._request["size_bytes"]
            if is_enough or now - began > self._request["max_s"]:
                return True
            if now - heard > self._request["quiet_s"]:
                return False

    def _subscribe(self) -> None:
        """Make the subscriptions those of the manifest.

        One that stands is not repeated, as the broker would then give its retained messages again.
        """
        wanted: dict[str, int] = self._request["topics"]
        standing: dict[str, int] = self._request["known_topics"] if self._is_known else {}
        for topic in standing.keys() - wanted.keys():
            self._await(self._client.unsubscribe(topic))
        for topic, qos in wanted.items():
            if standing.get(topic) != qos:
                self._await(self._client.subscribe(topic, qos))

    def _await(self, asked: tuple[MQTTErrorCode, int | None]) -> None:
        code, mid = asked
        if code != mqtt.MQTT_ERR_SUCCESS or mid is None:
            raise SourceError("unavailable", mqtt.error_string(code))
        self._awaited.add(mid)

    def _wait(self, is_done: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + self._request["wait_s"]
        while not is_done():
            is_late = time.monotonic() > give_up_at
            self._look()
            if is_late and not is_done():
                raise SourceError("unavailable", f"no answer within {self._request['wait_s']:g} s")

    def _look(self) -> None:
        code = self._client.loop(_LOOK_S)
        if self._rejection is not None:
            raise SourceError("unavailable", self._rejection)
        if code != mqtt.MQTT_ERR_SUCCESS:
            self._keep()
            raise SourceError("unavailable", mqtt.error_string(code))

    def _keep(self) -> None:
        """Bring what was received to the disk, and then say so to the broker, which forgets it."""
        if not self._pending:
            return
        lines = [message.payload.translate(_LINE_ENDS) + b"\n" for message in self._pending if message.payload]
        self._file.write(b"".join(lines))
        self._file.flush()
        os.fsync(self._file.fileno())
        for message in self._pending:
            self._client.ack(message.mid, message.qos)
        self._pending, self._pending_bytes = [], 0

    def _note_connection(self, _client: object, _data: object, flags: Any, reason: ReasonCode, _more: object) -> None:
        if reason.is_failure:
            self._rejection = f"the broker rejects: {reason}"
        else:
            self._is_known = bool(flags.session_present)

    def _note_subscription(
        self, _client: object, _data: object, mid: int, reasons: list[ReasonCode], _more: object
    ) -> None:
        self._awaited.discard(mid)
        if any(reason.is_failure for reason in reasons):
            self._rejection = "the broker rejects a topic"

    def _note_message(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        self._messages += 1
        self._pending.append(message)
        self._pending_bytes += len(message.payload)
        self._read_bytes += len(message.payload)
