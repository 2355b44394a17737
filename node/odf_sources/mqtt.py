"""Messages of an MQTT broker: kept in the node's home as they come, and taken from there, each once.

A broker forgets a message once it hears that it has arrived. So ``odf_sources.readers`` writes messages into
numbered files before it says so, and the number of the file that was taken stands in the block with its rows.

Source: clause ING-33 in ``spec/plug-ins/sources.md``; ODF "FetchStepMqtt".
"""

import asyncio
import fcntl
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from odf_node.ports.sources import Fetched, SourceUnavailableError, UpToDate
from odf_node.records.errors import mapped_os_errors
from odf_node.sources.checks import check_extra, check_secret, find_missing_extra
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.limits import BoundedFile, SourceLimits
from odf_node.sources.reader_process import run_reader
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import FetchStep, FetchStepMqtt, SourceState
from odf_protocol.manifest.errors import At

MESSAGES: Final = "odf-node/mqtt-messages"
"""The kind of a source state: which messages were taken. Other nodes do not know it, and read the rows all the same."""

_EXTRA: Final = ("mqtt", "paho")
"""Its name, and the library that it brings, as it is imported."""

_MAX_PORT: Final = 65_535
_MAX_TOPIC_BYTES: Final = 65_535  # Source: MQTT 3.1.1 section 1.5.3
_MAX_MESSAGES: Final = 10_000  # as the reference implementation
_MAX_BYTES: Final = 64 * 1024**2  # guess: a batch as an engine likes it
_MAX_S: Final = 60.0  # guess: of a topic that is never quiet
_MAX_QOS: Final = 1  # the second half of the handshake of 2 would be lost with a reader that is killed
_CHUNK_BYTES: Final = 1024**2
_SUFFIX: Final = ".ndjson"


class MqttSource(SourceKind):
    """Messages of MQTT brokers."""

    steps = (FetchStepMqtt,)

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, FetchStepMqtt)
        if not step.host or not 1 <= step.port <= _MAX_PORT:
            at.reject("a host and a port", f"{step.host}:{step.port}")
        if not step.topics:
            (at / "topics").reject("a topic", "none")
        for index, topic in enumerate(step.topics):
            if not 1 <= len(topic.path.encode()) <= _MAX_TOPIC_BYTES or "\0" in topic.path:
                (at / "topics" / index / "path").reject("a topic of 1 to 65535 bytes", topic.path)
        if step.password is not None and step.username is None:
            (at / "password").reject("a username beside the password", "none")
        if step.password is not None:
            check_secret(step.password, at / "password")
        check_extra(*_EXTRA, at)

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        assert isinstance(step, FetchStepMqtt)
        return await fetch_mqtt(step, context)


async def fetch_mqtt(step: FetchStepMqtt, context: FetchContext) -> Fetched | UpToDate:
    """Fetch what the broker has, as one line for each message; see ``SourceReader.fetch``."""
    session, home = context.session, context.settings.home
    messages = context.folder if home is None else home.messages
    name = f"mqtt://{step.host}:{step.port}"
    if missing := find_missing_extra(*_EXTRA):
        raise UnsupportedError("source", found=name, supported=missing)
    topics = {topic.path: min(topic.qos.value if topic.qos else 0, _MAX_QOS) for topic in step.topics}
    known_topics, last = _read_state(context.state)
    with _hold(messages / session, name) as own:
        waiting = _list_waiting(own, last)
        has_more = True
        if not waiting:
            path = own / f"{last + 1}{_SUFFIX}"
            request = _request_of(step, path, session, topics, known_topics, context.limits)
            nothing = context.folder / f"nothing-{secrets.token_hex(8)}"
            answer = await run_reader("odf_sources.readers.mqtt", request, target=nothing, name=name, context=context)
            nothing.unlink()
            has_more = answer.get("has_more") is True
            waiting = _list_waiting(own, last)
        if not waiting:
            return UpToDate()
        number, path = waiting[0]
        target = context.folder / f"fetched-{secrets.token_hex(8)}"
        await asyncio.to_thread(_copy, path, target, name, context.limits)
    value = json.dumps({"topics": topics, "last": number}, ensure_ascii=False)
    taken = SourceState(source_name="default", kind=MESSAGES, value=value)
    return Fetched(path=target, name=name, source_state=taken, event_time=context.now, has_more=has_more)


def _request_of(
    step: FetchStepMqtt,
    path: Path,
    session: str,
    topics: dict[str, int],
    known_topics: dict[str, int],
    limits: SourceLimits,
) -> dict[str, Any]:
    return {
        "host": step.host,
        "port": step.port,
        "username": step.username,
        "password": step.password,
        "topics": topics,
        "known_topics": known_topics,
        "session": session,
        "path": str(path),
        "messages": _MAX_MESSAGES,
        "size_bytes": min(_MAX_BYTES, limits.size_bytes // 2),
        "max_s": _MAX_S,
        "quiet_s": limits.quiet_s,
        "wait_s": limits.connect_s,
    }


def _read_state(state: SourceState | None) -> tuple[dict[str, int], int]:
    """Read the subscriptions that the session has, and the number of the file that was taken last."""
    if state is None or state.kind != MESSAGES:
        return {}, 0
    try:
        found = json.loads(state.value)
        topics, last = found["topics"], found["last"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}, 0
    is_form = isinstance(topics, dict) and isinstance(last, int) and last >= 0
    return (topics, last) if is_form else ({}, 0)


@contextmanager
def _hold(own: Path, name: str) -> Iterator[Path]:
    """Hold the folder of a session alone."""
    with mapped_os_errors(own):
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (own / "lock").open("wb")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SourceUnavailableError(name, "another pull of this dataset reads its messages just now") from None
        yield own


def _list_waiting(own: Path, last: int) -> list[tuple[int, Path]]:
    """List files of messages that were not taken, by number; those that were are removed."""
    waiting = []
    for path in (each for each in own.glob(f"*{_SUFFIX}") if each.stem.isdecimal()):
        number = int(path.stem)
        if number > last and _drop_torn_line(path):
            waiting.append((number, path))
        else:
            path.unlink()
    return sorted(waiting)


def _drop_torn_line(path: Path) -> int:
    """Cut what was written when a reader was killed, and which the broker sends again; return the size in bytes."""
    with path.open("rb+") as file:
        end = file.seek(0, 2)
        while end:
            begin = max(0, end - _CHUNK_BYTES)
            file.seek(begin)
            line_end = file.read(end - begin).rfind(b"\n")
            if line_end >= 0:
                file.truncate(begin + line_end + 1)
                return begin + line_end + 1
            end = begin
        file.truncate(0)
    return 0


def _copy(path: Path, target: Path, name: str, limits: SourceLimits) -> None:
    with path.open("rb") as file, BoundedFile(target, name, limits) as copy:
        while chunk := file.read(_CHUNK_BYTES):
            copy.write(chunk)


SOURCE: Final = MqttSource()
