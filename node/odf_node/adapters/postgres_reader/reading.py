"""Rows of a table or query, asked of a server in one read-only transaction.

Source: clause ING-31 in ``spec/ingest.md``.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import psycopg

from odf_node.adapters.postgres_reader.types import INFINITE, PostgresType, find_type
from odf_protocol.errors import MalformedError, shown

_MOST_ROW_BYTES: Final = 16 * 1024**2  # as a record of CSV (ING-2)
_UNAVAILABLE: Final = frozenset({"", "08", "28", "40", "53", "55", "57", "58", "XX"})
"""Classes of SQLSTATE (none: no connection) that may be otherwise next time; all others are the question's fault."""

_NO_FILE: Final = "/dev/null/none"
_SETTINGS: Final = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",  # every digit that tells a float from its neighbours
}
"""By which values are written, whatever the server's own are."""


def answer(request: dict[str, Any], rows: BinaryIO) -> dict[str, Any]:
    """Write the rows that a request asks for, as lines of JSON; return how far they go, or what is wrong."""
    try:
        return _read_rows(request, rows)
    except MalformedError as error:
        return _fault("malformed", request, error.found, error.expected)
    except psycopg.Error as error:
        is_unavailable = (error.sqlstate or "")[:2] in _UNAVAILABLE
        text = error.diag.message_primary or str(error) or type(error).__name__
        wrong = "a table or query of the database that this user may read, with this column"
        return _fault("unavailable" if is_unavailable else "malformed", request, text, wrong)
    except UnicodeDecodeError:
        return _fault("malformed", request, "bytes that are none", "texts in UTF-8")
    except MemoryError:
        return _fault("malformed", request, "one that does not fit into memory", "rows of at most 16 MiB")


def _fault(kind: str, request: dict[str, Any], found: object, expected: object) -> dict[str, Any]:
    """Say what is wrong in one line; a server that was told the password may repeat it."""
    text = " ".join(str(found).split())
    if password := request["settings"].get("password"):
        text = text.replace(password, "...")
    return {"error": {"kind": kind, "found": shown(text), "expected": str(expected)}}


def _read_rows(request: dict[str, Any], rows: BinaryIO) -> dict[str, Any]:
    with psycopg.connect(
        **request["settings"],
        passfile=_NO_FILE,  # somebody else's manifest must not send what the operator keeps for other programs
        gssencmode="disable",
        client_encoding="UTF8",
        application_name="odf-node",
        keepalives_idle="60",
        prepare_threshold=None,
        cursor_factory=psycopg.RawCursor,
    ) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ  # one state, from the first question on
        connection.read_only = True
        settings = {**_SETTINGS, "statement_timeout": str(request["total_ms"])}
        asked = ", ".join(f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in settings.items())
        connection.execute(f"SELECT {asked}".encode())
        table = _Table(connection, request)
        bound = table.find_bound(request["last"])
        if bound is None:
            return {"last": None, "has_more": False}
        for row in table.iter_rows(request["last"], bound):
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            if len(line) > _MOST_ROW_BYTES:
                raise MalformedError("table", expected="rows of at most 16 MiB", found=f"one of {len(line)} bytes")
            rows.write(line)
        return {"last": bound, "has_more": table.find_bound(bound) is not None}


class _Table:
    """What is asked of a table or query; each has a parameter, with which a server takes one statement alone."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]", request: dict[str, Any]) -> None:
        self._connection = connection
        self._limit = request["limit"]
        self._rows = _rows_of(request["rows"])
        self._columns = self._find_columns(request["by"])
        self._by, self._type = _quoted(request["by"]), self._columns[request["by"]]
        # Names are quoted, and a query is the manifest's.
        without = f"SELECT EXISTS (SELECT FROM {self._rows} WHERE {self._by} IS NULL LIMIT $1)"  # noqa: S608
        if self._ask(without, 1) == (True,):
            expected = f"a value in {request['by']} of every row"
            raise MalformedError("table", expected=expected, found="a row that has none, and would never be read")

    def find_bound(self, last: str | None) -> str | None:
        """Find the last value of the next batch, None where nothing is new."""
        # Types of which there is no max() are followed, too.
        ordered = f"SELECT {self._by} AS by FROM {self._rows} WHERE {self._behind(last)} ORDER BY 1 LIMIT $1"  # noqa: S608
        asked = f"SELECT by::pg_catalog.text FROM ({ordered}) AS ordered ORDER BY by DESC LIMIT 1"  # noqa: S608
        found = self._ask(asked, self._limit, *_values(last))
        if found is None:
            return None
        (bound,) = found
        if self._type.has_infinity and bound in INFINITE:
            raise MalformedError(
                "table", expected="a column of finite values", found=f"{bound}, after which nothing is"
            )
        return str(bound)

    def iter_rows(self, last: str | None, bound: str) -> Iterator[dict[str, str | None]]:
        """Iterate over the rows behind ``last`` up to ``bound``, as texts (ING-4)."""
        named = ", ".join(each.text_of(_quoted(name)) for name, each in self._columns.items())
        asked = (
            f"SELECT {named} FROM {self._rows} "  # noqa: S608 - names, quoted, and the query that the manifest has
            f"WHERE {self._by} <= $1::{self._type.name} AND {self._behind(last)} ORDER BY {self._by}"
        )
        with self._connection.cursor() as cursor:
            for row in cursor.stream(asked.encode(), [bound, *_values(last)]):
                columns = zip(self._columns.items(), row, strict=True)
                yield {name: each.mend(value) for (name, each), value in columns}

    def _behind(self, last: str | None) -> str:
        parts = ["TRUE" if last is None else f"{self._by} > $2::{self._type.name}"]
        if self._type.name == "xid8":
            # What runs could still commit below what is read now.
            parts.append(f"{self._by} < pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())")
        return " AND ".join(parts)

    def _find_columns(self, by: str) -> dict[str, PostgresType]:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._rows} LIMIT $1".encode(), [0])  # noqa: S608 - as above
            described = [(each.name, each.type_code) for each in cursor.description or ()]
        asked = (
            "SELECT oid, typname, typtype, typcategory FROM pg_catalog.pg_type WHERE oid = ANY($1::pg_catalog.oid[])"
        )
        kinds = {oid: rest for oid, *rest in self._connection.execute(asked.encode(), [[oid for _, oid in described]])}
        names = [name for name, _ in described]
        if by not in names or len(set(names)) != len(names):
            expected = f"columns of different names, {by} among them"
            raise MalformedError("table", expected=expected, found=f"columns {', '.join(names)}")
        columns = {name: find_type(name, oid, kinds.get(oid, ("?", "?", "?"))) for name, oid in described}
        if not columns[by].is_ordered:
            expected = f"a number, time or text in {by}"
            raise MalformedError("table", expected=expected, found=f"the type {columns[by].name}")
        return columns

    def _ask(self, question: str, *values: object) -> tuple[Any, ...] | None:
        return self._connection.execute(question.encode(), values).fetchone()


def _rows_of(rows: dict[str, str]) -> str:
    if "query" in rows:
        return f"({rows['query']}\n) AS source"
    return ".".join(_quoted(rows[each]) for each in ("schema", "table") if each in rows)


def _values(last: str | None) -> Sequence[str]:
    return () if last is None else (last,)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
