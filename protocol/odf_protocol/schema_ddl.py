"""Schemas of read steps written as SQL column definitions (``ddlSchema``).

Grammar, one column per entry, or several separated by commas::

    column  := name type ["NOT" "NULL"]
    name    := letter or "_", then letters, digits, "_" or "$" | "quoted" | `quoted`
    type    := word ["(" number {"," number} ")"] {word} | "ARRAY" "<" type ">"

Words of types are read in any case; names keep theirs. Nothing but ``NOT NULL`` may follow a type.

==================================================================  =============================
SQL                                                                 ODF
==================================================================  =============================
BOOL, BOOLEAN                                                       Option<Bool>
INT, INTEGER, SIGNED, INT32; with UNSIGNED, or UNSIGNED, UINT32     Option<Int32>; Option<UInt32>
BIGINT; BIGINT UNSIGNED                                             Option<Int64>; Option<UInt64>
FLOAT, FLOAT32; DOUBLE                                              Option<Float32>; Option<Float64>
DECIMAL(p, s)                                                       Decimal, **required**
DATE                                                                Date, **required**
TIMESTAMP, TIMESTAMPTZ, any precision, WITH or WITHOUT TIME ZONE    Option<Timestamp(ms, UTC)>
STRING, VARCHAR, FIXEDSTRING(n), TEXT, TINYTEXT, MEDIUMTEXT, ...    Option<String>
ARRAY<T>                                                            Option<List<T>>
==================================================================  =============================

That DATE and DECIMAL are required whatever is written is how the reference implementation reads them, and a schema must
mean the same at every node. Whoever wants an optional date writes ``schema`` instead.

Source: ODF "ReadStep.ddlSchema"; the table and the grammar as observed with the reference implementation.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NoReturn

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    DataTypeUInt32,
    DataTypeUInt64,
    TimeUnit,
)

#: Most columns of one schema. # guess
MAX_COLUMNS: Final = 10_000

#: Longest single entry, in characters. # guess
MAX_ENTRY_CHARACTERS: Final = 100_000

#: Deepest nesting of ARRAY. # guess
MAX_ARRAY_DEPTH: Final = 16

#: Arrow's 256-bit decimals end here.
MAX_DECIMAL_PRECISION: Final = 76

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<word>[^\W\d][\w$]*)
      | (?P<number>[0-9]{1,9}(?![0-9\w]))
      | "(?P<double>(?:[^"]|"")*)"
      | `(?P<back>(?:[^`]|``)*)`
      | (?P<sign>[(),<>])
    )""",
    re.VERBOSE,
)

#: Words that start a table constraint in SQL: as names they need quotes.
_RESERVED: Final = frozenset(
    {"CHECK", "CONSTRAINT", "FOREIGN", "FULLTEXT", "INDEX", "KEY", "PRIMARY", "SPATIAL", "UNIQUE"}
)

_TIMESTAMP: Final = DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC")

#: Type, its form with UNSIGNED, and how many parameters it may have.
_SIMPLE: Final[dict[str, tuple[DataType, DataType | None, tuple[int, ...]]]] = {
    "BOOL": (DataTypeBool(), None, (0,)),
    "BOOLEAN": (DataTypeBool(), None, (0,)),
    "INT": (DataTypeInt32(), DataTypeUInt32(), (0, 1)),
    "INTEGER": (DataTypeInt32(), DataTypeUInt32(), (0, 1)),
    "SIGNED": (DataTypeInt32(), None, (0,)),
    "INT32": (DataTypeInt32(), None, (0,)),
    "UNSIGNED": (DataTypeUInt32(), None, (0,)),
    "UINT32": (DataTypeUInt32(), None, (0,)),
    "BIGINT": (DataTypeInt64(), DataTypeUInt64(), (0, 1)),
    "FLOAT": (DataTypeFloat32(), None, (0, 1)),
    "FLOAT32": (DataTypeFloat32(), None, (0,)),
    "DOUBLE": (DataTypeFloat64(), None, (0, 1)),
    "STRING": (DataTypeString(), None, (0, 1)),
    "VARCHAR": (DataTypeString(), None, (0, 1)),
    "FIXEDSTRING": (DataTypeString(), None, (1,)),
    "TEXT": (DataTypeString(), None, (0,)),
    "TINYTEXT": (DataTypeString(), None, (0,)),
    "MEDIUMTEXT": (DataTypeString(), None, (0,)),
    "LONGTEXT": (DataTypeString(), None, (0,)),
    "TIMESTAMPTZ": (_TIMESTAMP, None, (0, 1)),
}

_SUPPORTED: Final = (*_SIMPLE, "DECIMAL", "DATE", "TIMESTAMP", "ARRAY")

#: What somebody who writes one of these should write.
_INSTEAD: Final = {
    "TINYINT": "INT, or 'schema' with Int8",
    "SMALLINT": "INT, or 'schema' with Int16",
    "INT8": "BIGINT, or 'schema' with Int8",
    "INT16": "INT, or 'schema' with Int16",
    "INT64": "BIGINT",
    "UINT8": "INT UNSIGNED, or 'schema' with UInt8",
    "UINT16": "INT UNSIGNED, or 'schema' with UInt16",
    "UINT64": "BIGINT UNSIGNED",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "FLOAT64": "DOUBLE",
    "NUMERIC": "DECIMAL(precision, scale)",
    "CHAR": "STRING",
    "DATETIME": "TIMESTAMP",
    "PRECISION": "DOUBLE without it",
    "BINARY": "'schema' with Binary",
    "BYTEA": "'schema' with Binary",
    "TIME": "'schema' with Time",
    "MAP": "'schema' with Map",
    "STRUCT": "'schema' with Struct",
}

_USUAL: Final = (
    "BOOL, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, STRING, ARRAY<T>; 'schema' knows more"
)


class DdlError(MalformedError):
    """Text is not a column definition.

    Attributes:
        entry: Index in the list of strings, from 0.
        position: Character in the entry, from 0.
    """

    def __init__(self, entry: int, position: int, *, expected: str, found: str) -> None:
        place = f"column definition {entry + 1}, character {position + 1}"
        super().__init__("ddlSchema", where=place, expected=expected, found=found)
        self.entry = entry
        self.position = position


class UnsupportedDdlError(UnsupportedError):
    """A type of SQL that has no place in this dialect; fields as ``DdlError``."""

    def __init__(self, entry: int, position: int, *, found: str, supported: str) -> None:
        place = f"column definition {entry + 1}, character {position + 1}"
        super().__init__(f"SQL type in ddlSchema at {place}", found=found, supported=supported)
        self.entry = entry
        self.position = position


def parse_ddl(definitions: Iterable[str]) -> DataSchema:
    """Read column definitions.

    Args:
        definitions: As in ``ddlSchema``; normally one column each. Blank ones are skipped.

    Returns:
        The columns in their order.

    Raises:
        DdlError: Not a column definition, a column twice, or over a limit.
        UnsupportedDdlError: A type outside the table above.
    """
    fields: list[DataField] = []
    names: set[str] = set()
    for entry, text in enumerate(definitions):
        parser = _Parser(entry, text)
        for position, field in parser.parse_columns():
            if field.name in names:
                parser.fail(position, "each column once", f"{field.name!r} again")
            if len(fields) == MAX_COLUMNS:
                parser.fail(position, f"at most {MAX_COLUMNS} columns", "more")
            names.add(field.name)
            fields.append(field)
    return DataSchema(fields=tuple(fields))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


class _Parser:
    """One entry; ``_next`` is the token to look at."""

    def __init__(self, entry: int, text: str) -> None:
        self._entry = entry
        self._text = text
        self._position = 0
        if len(text) > MAX_ENTRY_CHARACTERS:
            self.fail(0, f"at most {MAX_ENTRY_CHARACTERS} characters", str(len(text)))
        self._next = self._scan()

    def fail(self, position: int, expected: str, found: str) -> NoReturn:
        raise DdlError(self._entry, position, expected=expected, found=found)

    def parse_columns(self) -> Iterable[tuple[int, DataField]]:
        if self._next.kind == "end":
            return
        while True:
            yield self._next.position, self._parse_column()
            if self._next.kind == "end":
                return
            self._expect_sign(",", "',', 'NOT NULL' or the end")

    def _parse_column(self) -> DataField:
        name = self._next
        if name.kind not in ("word", "quoted") or not name.text:
            self.fail(name.position, "a column name", name.shown)
        if name.kind == "word" and name.text.upper() in _RESERVED:
            self.fail(name.position, "a column name; in quotes it would be one", name.shown)
        self._advance()
        data_type = self._parse_type(1)
        if self._accept_word("NOT"):
            if not self._accept_word("NULL"):
                self.fail(self._next.position, "'NULL'", self._next.shown)
            data_type = data_type.inner if isinstance(data_type, DataTypeOption) else data_type
        return DataField(name=name.text, type=data_type)

    def _parse_type(self, depth: int) -> DataType:
        word = self._next
        if word.kind != "word":
            self.fail(word.position, "a type", word.shown)
        self._advance()
        name = word.text.upper()
        match name:
            case "ARRAY":
                return DataTypeOption(inner=self._parse_array(depth))
            case "DATE":
                self._parse_parameters(name, (0,))
                return DataTypeDate()
            case "DECIMAL":
                return self._parse_decimal()
            case "TIMESTAMP":
                self._parse_parameters(name, (0, 1))
                self._skip_time_zone()
                return DataTypeOption(inner=_TIMESTAMP)
        if name not in _SIMPLE:
            self._reject_type(word)
        data_type, unsigned, parameter_counts = _SIMPLE[name]
        self._parse_parameters(name, parameter_counts)
        if name == "DOUBLE" and self._next.kind == "word" and self._next.text.upper() == "PRECISION":
            self._reject_type(self._next)
        if unsigned is not None and self._accept_word("UNSIGNED"):
            return DataTypeOption(inner=unsigned)
        return DataTypeOption(inner=data_type)

    def _parse_array(self, depth: int) -> DataTypeList:
        if depth > MAX_ARRAY_DEPTH:
            self.fail(self._next.position, f"at most {MAX_ARRAY_DEPTH} levels of ARRAY", "more")
        self._expect_sign("<", "'<'")
        item_type = self._parse_type(depth + 1)
        self._expect_sign(">", "'>'")
        return DataTypeList(item_type=item_type)

    def _parse_decimal(self) -> DataTypeDecimal:
        position = self._next.position
        precision, scale = self._parse_parameters("DECIMAL", (2,))
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
            expected = f"a precision from 1 to {MAX_DECIMAL_PRECISION} and a scale up to it"
            self.fail(position, expected, f"({precision}, {scale})")
        return DataTypeDecimal(precision=precision, scale=scale)

    def _parse_parameters(self, name: str, counts: tuple[int, ...]) -> list[int]:
        position = self._next.position
        numbers: list[int] = []
        if self._next.kind == "sign" and self._next.text == "(":
            self._advance()
            while True:
                if self._next.kind != "number":
                    self.fail(self._next.position, "a number", self._next.shown)
                numbers.append(int(self._next.text))
                self._advance()
                if not (self._next.kind == "sign" and self._next.text == ","):
                    break
                self._advance()
            self._expect_sign(")", "',' or ')'")
        if len(numbers) not in counts:
            expected = f"{' or '.join(map(str, counts))} numbers in parentheses after {name}"
            self.fail(position, expected, str(len(numbers)))
        return numbers

    def _skip_time_zone(self) -> None:
        if self._accept_word("WITH") or self._accept_word("WITHOUT"):
            for word in ("TIME", "ZONE"):
                if not self._accept_word(word):
                    self.fail(self._next.position, f"{word!r}", self._next.shown)

    def _reject_type(self, word: _Token) -> NoReturn:
        name = word.text.upper()
        nearest = get_close_matches(name[:32], _SUPPORTED, n=1, cutoff=0.7)
        supported = _INSTEAD.get(name) or (nearest[0] if nearest else _USUAL)
        raise UnsupportedDdlError(self._entry, word.position, found=word.text[:64], supported=supported)

    def _accept_word(self, word: str) -> bool:
        if self._next.kind == "word" and self._next.text.upper() == word:
            self._advance()
            return True
        return False

    def _expect_sign(self, sign: str, expected: str) -> None:
        if not (self._next.kind == "sign" and self._next.text == sign):
            self.fail(self._next.position, expected, self._next.shown)
        self._advance()

    def _advance(self) -> None:
        self._next = self._scan()

    def _scan(self) -> _Token:
        found = _TOKEN.match(self._text, self._position)
        if found is None:
            rest = self._text[self._position :].lstrip()
            if not rest:
                return _Token("end", "", len(self._text))
            position = len(self._text) - len(rest)
            self.fail(position, "a word, a number, quotes or one of ( ) , < >", repr(rest[:20]))
        self._position = found.end()
        kind = found.lastgroup
        assert kind is not None, "every alternative of the pattern is named"
        text = found.group(kind)
        position = found.start(kind)
        if kind == "double":
            return _Token("quoted", text.replace('""', '"'), position - 1)
        if kind == "back":
            return _Token("quoted", text.replace("``", "`"), position - 1)
        return _Token(kind, text, position)
