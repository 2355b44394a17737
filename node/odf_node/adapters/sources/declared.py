"""What a polling source declares that this node cannot fetch or prepare: known before anything is fetched.

Source: clause ING-18 in ``spec/ingest.md``.
"""

import re
from collections.abc import Callable
from typing import Final, NoReturn

from odf_node.adapters.bucket_client import BUCKET_SCHEMES
from odf_node.adapters.sources.bucket import is_in_bucket, parse_object_url
from odf_node.adapters.sources.containers import command_of, find_image
from odf_node.adapters.sources.database import SCHEME, parse_table_url
from odf_node.adapters.sources.files import check_event_time, check_order, parse_file_url, parse_pattern
from odf_node.adapters.sources.ftp import FTP_SCHEME, parse_ftp_url
from odf_node.adapters.sources.postgres import POSTGRES_SCHEMES, parse_postgres_url
from odf_node.adapters.sources.reader_process import find_missing_extra
from odf_node.adapters.sources.url import show_url
from odf_node.ports.images import ImageShelf
from odf_node.ports.sources import COMMANDS_SETTING, DATASET_SCHEME, Commands
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromPath,
    FetchStep,
    FetchStepContainer,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    PrepStep,
    PrepStepPipe,
)
from odf_protocol.manifest.errors import At

__all__ = ["check_container", "check_fetch", "check_prepare"]

_WEB_SCHEMES: Final = ("http", "https")
_SCHEMES: Final = (
    *_WEB_SCHEMES,
    "file",
    FTP_SCHEME,
    SCHEME,
    *POSTGRES_SCHEMES,
    *sorted(BUCKET_SCHEMES),
    DATASET_SCHEME,
)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_TEMPLATE: Final = "${{"
_WHOLE_TEMPLATE: Final = re.compile(r"\$\{\{.*?\}\}")
_MOST_PORT: Final = 65_535
_MOST_TOPIC_BYTES: Final = 65_535  # Source: MQTT 3.1.1 section 1.5.3
_ANY_VALUE: Final = "1"
"""Stands for what a template will be: it may be a name, a host, a password and a number of rows."""


def check_fetch(step: FetchStep, at: At) -> None:
    """Refuse a fetch step that could never be done here.

    Raises:
        SnapshotError: A kind, a scheme, a pattern or an option that is not built.
    """
    match step:
        case FetchStepUrl(url=url):
            _check_url(url, at / "url")
            if isinstance(step.event_time, EventTimeSourceFromPath):
                (at / "eventTime").reject("FromMetadata or FromSystemTime for a URL", "FromPath")
        case FetchStepFilesGlob(path=path):
            if is_in_bucket(path):
                _check_bucket(path, at / "path", is_pattern=True)
            elif not path.startswith(_TEMPLATE):
                _check(lambda: parse_pattern(path), at / "path")
            _check(lambda: check_order(step), at / "order")
            _check(lambda: check_event_time(step), at / "eventTime")
        case FetchStepMqtt():
            _check_mqtt(step, at)
        case _:
            kind = type(step).__name__.removeprefix("FetchStep")
            (at / "kind").reject(
                f"Url, FilesGlob, Mqtt or Container ({kind} is not taken, as it asks a node of another network, whose "
                "answers nobody here checks; fetch them by a program of yours as NDJSON, declare a push source, and "
                "push them with 'odf-node ingest')",
                kind,
            )


def check_container(step: FetchStepContainer, commands: Commands, images: ImageShelf | None, at: At) -> None:
    """Refuse a container that could not be run here.

    Raises:
        SnapshotError: Nobody may run one, its image was not added, or nothing says what to run.
    """
    if commands is Commands.NOBODY:
        allow = f"{COMMANDS_SETTING} = {Commands.SANDBOXED.value!r}"
        (at / "kind").reject(
            f"no program, as nobody may run one here (the setting {allow} allows it, in a sandbox)", "Container"
        )
    if _TEMPLATE not in step.image:
        _check(lambda: command_of(step, find_image(step.image, images)), at / "image")


def check_prepare(steps: tuple[PrepStep, ...], commands: Commands, at: At) -> None:
    """Refuse a prepare step that could never be done here.

    Raises:
        SnapshotError: A command, where nobody may run one, or none in a step that runs one.
    """
    for index, step in enumerate(steps):
        if not isinstance(step, PrepStepPipe):
            continue
        if not step.command:
            (at / index / "command").reject("a program and its arguments", "none")
        if commands is Commands.NOBODY:
            allow = f"{COMMANDS_SETTING} = {Commands.SANDBOXED.value!r}"
            (at / index / "kind").reject(
                f"no command, as nobody may run one here (the setting {allow} allows it)", "Pipe"
            )


def _check_url(url: str, at: At) -> None:
    if url.startswith(_TEMPLATE):
        return
    scheme = _SCHEME.match(url)
    if scheme is None or scheme[1].lower() not in _SCHEMES:
        at.reject(
            "http://..., https://..., ftp://host/path, file:///absolute/path, "
            "sqlite:///absolute/path.db?table=...&by=..., postgresql://user@host/database?table=...&by=... "
            "or dataset:NAME",
            show_url(url),
            [f"{each}:" for each in _SCHEMES],
        )
    if scheme[1].lower() == "file" and _TEMPLATE not in url:
        _check(lambda: parse_file_url(url), at)
    if scheme[1].lower() == SCHEME and _TEMPLATE not in url:
        _check(lambda: parse_table_url(url), at)
    if scheme[1].lower() in _WEB_SCHEMES:
        check_no_password(url, at, end_of_authority="/?#")
    if scheme[1].lower() == FTP_SCHEME:
        check_no_password(url, at)
        _check(lambda: parse_ftp_url(_WHOLE_TEMPLATE.sub(_ANY_VALUE, url)), at)
    if scheme[1].lower() in POSTGRES_SCHEMES:
        check_no_password(url, at)
        _check(lambda: parse_postgres_url(_WHOLE_TEMPLATE.sub(_ANY_VALUE, url)), at)
        check_extra("postgresql", at)
    if is_in_bucket(url):
        _check_bucket(url, at, is_pattern=False)


def _check_bucket(source: str, at: At, *, is_pattern: bool) -> None:
    check_no_password(source, at)
    _check(lambda: parse_object_url(_WHOLE_TEMPLATE.sub(_ANY_VALUE, source), is_pattern=is_pattern), at)


def check_no_password(url: str, at: At, *, end_of_authority: str = "/") -> None:
    """Refuse a password that would be published: one in the URL, or that is a default of its template (ING-34).

    Args:
        url: Of a server.
        at: Its place.
        end_of_authority: Characters that stand in no password as it is.
    """
    authority = re.split(f"[{end_of_authority}]", _published_of(url).partition("://")[2], maxsplit=1)[0]
    user_info, at_sign, _ = authority.rpartition("@")
    if at_sign and user_info.partition(":")[2]:
        _reject_password(at)


def _published_of(text: str) -> str:
    """Leave out what only the environment says: templates without a default."""
    return _WHOLE_TEMPLATE.sub(lambda found: found[0] if "'" in found[0] else "", text)


def _reject_password(at: At) -> NoReturn:
    expected = "a password from the environment, such as ${{ env.SHOP_PASSWORD }}: the manifest is published"
    at.reject(expected, "one that is written out")


def _check_mqtt(step: FetchStepMqtt, at: At) -> None:
    if not step.host or not 1 <= step.port <= _MOST_PORT:
        at.reject("a host and a port", f"{step.host}:{step.port}")
    if not step.topics:
        (at / "topics").reject("a topic", "none")
    for index, topic in enumerate(step.topics):
        if not 1 <= len(topic.path.encode()) <= _MOST_TOPIC_BYTES or "\0" in topic.path:
            (at / "topics" / index / "path").reject("a topic of 1 to 65535 bytes", topic.path)
    if step.password is not None and step.username is None:
        (at / "password").reject("a username beside the password", "none")
    if step.password is not None and _published_of(step.password):
        _reject_password(at / "password")
    check_extra("mqtt", at)


def check_extra(extra: str, at: At) -> None:
    """Refuse a source of which the library is not installed."""
    if missing := find_missing_extra(extra):
        at.reject(f"the extra {extra} of odf-node, which is not installed here ({missing})", "none")


def _check(check: Callable[[], object], at: At) -> None:
    try:
        check()
    except MalformedError as error:
        at.reject(str(error.expected), str(error.found))
    except UnsupportedError as error:
        at.reject(str(error.supported), str(error.found))
