"""Rows of a table or query, asked of a server in one read-only transaction.

Source: clause ING-31 in ``spec/plug-ins/sources.md``; OIDs from PostgreSQL's ``pg_type.dat``, which do not change.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import psycopg

from odf_node.source_readers import fault
from odf_protocol.errors import MalformedError

MEMORY_BYTES: Final = 1024**3  # guess: this program takes 0.2 GiB, and a row of 16 MiB is in memory some five times

INFINITE: Final = frozenset({"NaN", "Infinity", "infinity"})
"""Values behind which nothing follows, as PostgreSQL orders and writes them."""


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type that is read.

    ``is_ordered``: a table can be followed by it. ``has_infinity``: some value is greater than all others.
    """

    name: str
    is_ordered: bool = False
    has_infinity: bool = False

    def text_of(self, column: str) -> str:
        """Return the SQL of a column's text; ``column`` is quoted."""
        match self.name:
            case "bytea":
                return f"pg_catalog.encode({column}, 'hex')"
            case "array":
                return f"pg_catalog.to_json({column})::pg_catalog.text"
        return f"{column}::pg_catalog.text"

    def fix(self, text: str | None) -> str | None:
        """Write a time in UTC as RFC 3339 does."""
        if self.name == "timestamptz" and text is not None and text.endswith("+00"):
            return text[:-3] + "Z"
        return text


_PLAIN: Final = {
    16: PostgresType("bool"),
    17: PostgresType("bytea"),
    19: PostgresType("name", is_ordered=True),
    20: PostgresType("int8", is_ordered=True),
    21: PostgresType("int2", is_ordered=True),
    23: PostgresType("int4", is_ordered=True),
    25: PostgresType("text", is_ordered=True),
    26: PostgresType("oid", is_ordered=True),
    114: PostgresType("json"),
    142: PostgresType("xml"),
    650: PostgresType("cidr"),
    700: PostgresType("float4", is_ordered=True, has_infinity=True),
    701: PostgresType("float8", is_ordered=True, has_infinity=True),
    774: PostgresType("macaddr8"),
    829: PostgresType("macaddr"),
    869: PostgresType("inet"),
    1042: PostgresType("bpchar", is_ordered=True),
    1043: PostgresType("varchar", is_ordered=True),
    1082: PostgresType("date", is_ordered=True, has_infinity=True),
    1083: PostgresType("time", is_ordered=True),
    1114: PostgresType("timestamp", is_ordered=True, has_infinity=True),
    1184: PostgresType("timestamptz", is_ordered=True, has_infinity=True),
    1186: PostgresType("interval"),
    1560: PostgresType("bit"),
    1562: PostgresType("varbit"),
    1700: PostgresType("numeric", is_ordered=True, has_infinity=True),
    2950: PostgresType("uuid", is_ordered=True),
    3220: PostgresType("pg_lsn", is_ordered=True),
    3802: PostgresType("jsonb"),
    5069: PostgresType("xid8", is_ordered=True),
}


def find_type(column: str, oid: int, kind: Sequence[str]) -> PostgresType:
    """Find how a column's values are written; ``kind``: name, type and category in ``pg_type``.

    Raises:
        MalformedError: They have no text that says them whole.
    """
    name, type_of_type, category = kind
    if oid in _PLAIN:
        return _PLAIN[oid]
    if type_of_type == "e":
        return PostgresType("enum")
    if category == "A":
        return PostgresType("array")
    expected = "columns of types that are read; 'query' can convert others or leave them out"
    raise MalformedError("table", expected=expected, found=f"{column} of the type {name}")


_MAX_ROW_BYTES: Final = 16 * 1024**2  # as a record of CSV (ING-2)
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
    secrets = [request["settings"].get("password")]
    try:
        return _read_rows(request, rows)
    except MalformedError as error:
        return fault("malformed", error.found, secrets, error.expected)
    except psycopg.Error as error:
        is_unavailable = (error.sqlstate or "")[:2] in _UNAVAILABLE
        text = error.diag.message_primary or str(error) or type(error).__name__
        wrong = "a table or query of the database that this user may read, with this column"
        return fault("unavailable" if is_unavailable else "malformed", text, secrets, wrong)
    except UnicodeDecodeError:
        return fault("malformed", "bytes that are none", secrets, "texts in UTF-8")
    except MemoryError:
        return fault("malformed", "one that does not fit into memory", secrets, "rows of at most 16 MiB")


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
            if len(line) > _MAX_ROW_BYTES:
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
                yield {name: each.fix(value) for (name, each), value in columns}

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

    def _ask(self, query_text: str, *values: object) -> tuple[Any, ...] | None:
        return self._connection.execute(query_text.encode(), values).fetchone()


def _rows_of(rows: dict[str, str]) -> str:
    if "query" in rows:
        return f"({rows['query']}\n) AS source"
    return ".".join(_quoted(rows[each]) for each in ("schema", "table") if each in rows)


def _values(last: str | None) -> Sequence[str]:
    return () if last is None else (last,)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
