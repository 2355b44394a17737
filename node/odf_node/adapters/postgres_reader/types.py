"""Types of PostgreSQL, and the texts that stand for their values.

Source: clause ING-31 in ``spec/ingest.md``; OIDs from PostgreSQL's ``pg_type.dat``, which do not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import MalformedError

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

    def mend(self, text: str | None) -> str | None:
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
