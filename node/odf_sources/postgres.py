"""Rows of a table or query of PostgreSQL, by a column that grows: each fetch brings those beyond the last value read.

The server is asked by ``odf_sources.readers``, a process of its own.

Source: clause ING-31 in ``spec/plug-ins/sources.md``.
"""

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from odf_node.ports.sources import Fetched, SourceUnavailableError, UpToDate
from odf_node.sources.checks import check_extra, check_no_password, check_value, fill_templates, find_missing_extra
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.limits import SourceLimits
from odf_node.sources.reader_process import run_reader
from odf_node.sources.source_state import cursor_state, find_last_value, read_limit
from odf_node.sources.url import show_url
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import EventTimeSourceFromPath, FetchStep, FetchStepUrl
from odf_protocol.manifest.errors import At

_EXTRA: Final = ("postgresql", "psycopg")
"""Its name, and the library that it brings, as it is imported."""

_EXPECTED: Final = (
    "postgresql://user@host/database?table=NAME&by=COLUMN, or query=SELECT... in place of table, and perhaps "
    "&schema=, &limit=ROWS, &sslmode="
)
_SOURCE: Final = frozenset({"table", "schema", "query", "by", "limit"})
_LIBPQ: Final = frozenset({"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding"})
"""Settings of the connection that a URL may have; all others of libpq stay what this program sets."""

_SSL_MODES: Final = frozenset({"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})
_SURE_MODES: Final = frozenset({"require", "verify-ca", "verify-full"})
_MAX_QUERY_CHARACTERS: Final = 100_000  # guess: more is no query that somebody wrote


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """Rows of a table or query, the column by which they grow, and how many a batch has.

    ``settings`` are libpq's, the password among them. A batch has more than ``limit`` where they share its last value.
    """

    settings: dict[str, str] = field(repr=False)
    rows: dict[str, str]
    by: str
    limit: int

    @property
    def cursor_place(self) -> dict[str, str]:
        """What a state says beside the last value: of a query its digest, as it may be long."""
        if "query" in self.rows:
            return {"query": hashlib.sha3_256(self.rows["query"].encode()).hexdigest(), "by": self.by}
        return {**self.rows, "by": self.by}


def parse_postgres_url(url: str) -> PostgresPlace:
    """Read a URL of a table or query.

    Raises:
        MalformedError: It is none.
    """
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
        port = parts.port or 5432
    except ValueError:
        raise _malformed("something that is no URL") from None
    named, limit = dict(options), read_limit(dict(options))
    unknown = named.keys() - _SOURCE - _LIBPQ
    if unknown or len(named) != len(options):
        raise _malformed(f"an option that is not known or stands twice: {', '.join(sorted(unknown or named))}")
    if not all(named.values()) or "by" not in named or ("table" in named) == ("query" in named):
        raise _malformed("no by, or not one of table and query")
    if parts.fragment or limit is None or ("schema" in named and "query" in named):
        raise _malformed("a fragment, a schema of a query, or a limit that is no number of rows from 1 to 10000000")
    if named.get("sslmode", "prefer") not in _SSL_MODES:
        raise _malformed(f"sslmode={named['sslmode']}, which is none of {', '.join(sorted(_SSL_MODES))}")
    rows = {str(name): named[name] for name in ("table", "schema", "query") if name in named}
    if len(rows.get("query", "")) > _MAX_QUERY_CHARACTERS or any("\0" in text for text in named.values()):
        raise _malformed("a query of more than 100000 characters, or a zero byte")
    settings = _read_server(parts.netloc, parts.path, port) | {name: named[name] for name in _LIBPQ & named.keys()}
    if not settings["host"] or "," in settings["host"]:
        raise _malformed("no host, or several")
    return PostgresPlace(settings | {"require_auth": _ways_to_sign_in(named)}, rows, named["by"], limit)


def _read_server(netloc: str, path: str, port: int) -> dict[str, str]:
    user_info, _, address = netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    host = address.rpartition(":")[0] if address.rpartition("]")[2].count(":") else address
    database = unquote(path.removeprefix("/"))
    if not user or not database or "/" in database:
        raise _malformed("no user, or no database")
    settings = {"host": unquote(host.strip("[]")), "port": str(port), "user": unquote(user), "dbname": database}
    return settings | ({"password": unquote(password)} if password else {})


def _ways_to_sign_in(options: dict[str, str]) -> str:
    """Say how a server may ask for the password: as it is only where the connection is encrypted for certain."""
    ways = "none,md5,scram-sha-256"
    return f"{ways},password" if options.get("sslmode") in _SURE_MODES else ways


def _malformed(found: str) -> MalformedError:
    return MalformedError("URL of a table", expected=_EXPECTED, found=found)


class PostgresSource(SourceKind):
    """Tables and queries of PostgreSQL."""

    steps = (FetchStepUrl,)
    schemes = ("postgresql", "postgres")
    form = "postgresql://user@host/database?table=...&by=..."

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, FetchStepUrl)
        check_no_password(step.url, at / "url")
        check_value(lambda: parse_postgres_url(fill_templates(step.url)), at / "url")
        check_extra(*_EXTRA, at / "url")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        assert isinstance(step, FetchStepUrl)
        return await fetch_postgres(step, context)


async def fetch_postgres(step: FetchStepUrl, context: FetchContext) -> Fetched | UpToDate:
    """Fetch the rows behind the last value that was read, as lines of JSON; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise MalformedError("event time of a table", expected="FromSystemTime, or none", found="FromPath")
    if missing := find_missing_extra(*_EXTRA):
        raise UnsupportedError("source", found="a table of PostgreSQL", supported=missing)
    place, name = parse_postgres_url(step.url), show_url(step.url)
    target = context.folder / f"rows-{secrets.token_hex(8)}"
    last = find_last_value(context.state, place.cursor_place)
    request = request_of(place, last if isinstance(last, str) else None, context.limits)
    answer = await run_reader("odf_sources.readers.postgres", request, target=target, name=name, context=context)
    if not isinstance(answer.get("last"), str | None):
        raise SourceUnavailableError(name, "the reader gave no answer")
    if answer.get("last") is None:
        target.unlink()
        return UpToDate()
    cursor = cursor_state(place.cursor_place, answer.get("last"))
    has_more = bool(answer.get("has_more"))
    return Fetched(path=target, name=name, source_state=cursor, event_time=context.now, has_more=has_more)


def request_of(place: PostgresPlace, last: str | None, limits: SourceLimits) -> dict[str, Any]:
    """Make what a reader is asked: the rows behind ``last``."""
    return {
        "settings": place.settings | {"connect_timeout": str(max(2, int(limits.connect_s)))},
        "rows": place.rows,
        "by": place.by,
        "limit": place.limit,
        "last": last,
        "total_ms": int(limits.total_s * 1000),
    }


SOURCE: Final = PostgresSource()
