"""Rows of a table of an SQLite database, by a column that grows: each fetch brings those beyond the last value read.

Rows of one value come together, whatever the limit, since the next fetch begins behind it.

Source: clause ING-30 in ``spec/plug-ins/sources.md``.
"""

import asyncio
import json
import math
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from odf_node.ports.sources import Fetched, SourceUnavailableError, UpToDate
from odf_node.sources.checks import TEMPLATE, check_value
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.files import inspect_file
from odf_node.sources.limits import BoundedFile, SourceLimits
from odf_node.sources.source_state import cursor_state, find_last_value, read_limit
from odf_protocol.errors import MalformedError
from odf_protocol.events import EventTimeSourceFromPath, FetchStep, FetchStepUrl
from odf_protocol.manifest.errors import At

_EXPECTED: Final = "sqlite:///absolute/path.db?table=NAME&by=COLUMN, and perhaps &limit=ROWS"
_STEPS_A_LOOK: Final = 100_000  # guess: of SQLite's program, some milliseconds
_MAX_VALUE_BYTES: Final = 16 * 1024 * 1024  # as a record of CSV (ING-2); SQLite bounds rows that are stored by it, too
_MAX_COMPUTED_BYTES: Final = 64 * 1024 * 1024  # guess: a row that is computed is in no record which SQLite would bound


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table, the column by which it grows, and how many rows a batch has unless more share its last value."""

    path: Path
    table: str
    by: str
    limit: int

    @property
    def cursor_place(self) -> dict[str, str]:
        """What a state says beside the last value."""
        return {"table": self.table, "by": self.by}


def parse_table_url(url: str) -> TablePlace:
    """Read a URL of a table.

    Raises:
        MalformedError: It is none.
    """
    parts = urlsplit(url)
    path, options = unquote(parts.path), parse_qsl(parts.query, keep_blank_values=True)
    named = dict(options)
    limit = read_limit(named)
    has_names = bool(named.get("table")) and bool(named.get("by")) and len(named) == len(options)
    is_plain = (
        not (parts.netloc or parts.fragment) and path.startswith("/") and named.keys() <= {"table", "by", "limit"}
    )
    if not (has_names and is_plain) or limit is None:
        raise MalformedError("URL of a table", expected=_EXPECTED, found=url)
    return TablePlace(Path(path), named["table"], named["by"], limit)


class SqliteSource(SourceKind):
    """Tables of SQLite databases."""

    steps = (FetchStepUrl,)
    schemes = ("sqlite",)
    form = "sqlite:///absolute/path.db?table=...&by=..."

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, FetchStepUrl)
        if TEMPLATE not in step.url:
            check_value(lambda: parse_table_url(step.url), at / "url")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        assert isinstance(step, FetchStepUrl)
        return await asyncio.to_thread(fetch_rows, step, context)


def fetch_rows(step: FetchStepUrl, context: FetchContext) -> Fetched | UpToDate:
    """Fetch the rows behind the last value that was read, as lines of JSON; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise MalformedError("event time of a table", expected="FromSystemTime, or none", found="FromPath")
    place = parse_table_url(step.url)
    inspect_file(place.path, step.url, context.limits)
    last, target = find_last_value(context.state, place.cursor_place), context.folder / f"rows-{secrets.token_hex(8)}"
    try:
        with closing(_open(place, context.limits)) as database:
            names, by = _find_columns(database, place, step.url)
            bound = _find_bound(database, place, by, last)
            if bound is None:
                return UpToDate()
            with BoundedFile(target, step.url, context.limits) as file:
                for line in _iter_lines(database, place, by, names, last, bound, step.url):
                    file.write(line)
            has_more = _find_bound(database, place, by, bound) is not None
    except sqlite3.Error as error:
        raise SourceUnavailableError(step.url, f"the database does not answer: {error}") from error
    cursor = cursor_state(place.cursor_place, bound)
    return Fetched(path=target, name=step.url, source_state=cursor, event_time=context.now, has_more=has_more)


def _open(place: TablePlace, limits: SourceLimits) -> sqlite3.Connection:
    """Open a database that others write to, and that somebody else may have made, for reading."""
    # The very file that was inspected: of two slashes at its beginning SQLite would take what follows for a host.
    address = f"{place.path.resolve().as_uri()}?mode=ro"
    database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=limits.connect_s)
    give_up_at = time.monotonic() + limits.total_s
    database.set_progress_handler(lambda: time.monotonic() > give_up_at, _STEPS_A_LOOK)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    for setting in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON"):
        database.execute(f"PRAGMA {setting}")
    database.execute("BEGIN")  # one state of the table, from the first question to the last
    return database


def _find_columns(database: sqlite3.Connection, place: TablePlace, url: str) -> tuple[list[str], str]:
    # Computed columns are among them, those that a virtual table hides (1) are not.
    listed = "SELECT name, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1"
    found = database.execute(listed, (place.table,)).fetchall()
    names = [name for name, _ in found]
    if place.by not in names:
        has = f"columns {', '.join(names)}" if names else "no such table"
        raise MalformedError("table", where=url, expected=f"a column {place.by} of {place.table}", found=has)
    by = _quoted(place.by)
    if any(hidden for _, hidden in found) or not _is_stored(database, place):
        most = min(_MAX_VALUE_BYTES, _MAX_COMPUTED_BYTES // len(names))
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)
    # SQLite sorts nulls before all values, and blobs behind: two looks at an index tell, whatever the table's size.
    table = _quoted(place.table)
    ends = [
        database.execute(f"SELECT typeof({by}) FROM {table} ORDER BY {by} {way} LIMIT 1").fetchone()  # noqa: S608
        for way in ("ASC", "DESC")
    ]
    if ends[0] == ("null",) or ends[1] == ("blob",):
        expected = f"a number or text in {place.by} of every row"
        raise MalformedError(
            "table", where=url, expected=expected, found="a row that has none, and would never be read"
        )
    return names, by


def _is_stored(database: sqlite3.Connection, place: TablePlace) -> bool:
    """Say whether rows stand in the file as they are, and no view or module makes them; before 3.37 SQLite cannot."""
    if sqlite3.sqlite_version_info < (3, 37):
        return False
    kinds = database.execute("SELECT type FROM pragma_table_list(?) WHERE schema = 'main'", (place.table,)).fetchall()
    return kinds == [("table",)]


def _find_bound(database: sqlite3.Connection, place: TablePlace, by: str, last: Any) -> Any:
    """Find the last value of the next batch, None where nothing is new."""
    table, behind = _quoted(place.table), _behind(by, last)
    ordered = f"SELECT {by} FROM {table} WHERE {behind} ORDER BY {by} LIMIT ?"  # noqa: S608 - names, quoted
    asked = f"SELECT max({by}) FROM ({ordered})"  # noqa: S608
    (bound,) = database.execute(asked, (*_values(last), place.limit)).fetchone()
    return bound


def _iter_lines(
    database: sqlite3.Connection, place: TablePlace, by: str, names: list[str], last: Any, bound: Any, url: str
) -> Iterator[bytes]:
    columns = ", ".join(map(_quoted, names))
    asked = (
        f"SELECT {columns} FROM {_quoted(place.table)} "  # noqa: S608 - as above
        f"WHERE {_behind(by, last)} AND {by} <= ? ORDER BY {by}"
    )
    for row in database.execute(asked, (*_values(last), bound)):
        texts = {name: _text_of(value) for name, value in zip(names, row, strict=True)}
        try:
            yield json.dumps(texts, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError as error:
            raise MalformedError("table", where=url, expected="texts in UTF-8", found=ascii(texts)[:200]) from error


def _behind(by: str, last: Any) -> str:
    return "TRUE" if last is None else f"{by} > ?"


def _values(last: Any) -> tuple[Any, ...]:
    return () if last is None else (last,)


def _text_of(value: Any) -> str | None:
    """Write a value as texts of sources are read (ING-4)."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None if value is None else str(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


SOURCE: Final = SqliteSource()
