"""Node trees to ODF objects, directed by the declarations of the event dataclasses.

There is no code per event: the reader of a table, a union or a list is built from its declaration once and kept, so a
new field or member needs a line in its dataclass and nothing here.

* MAN-1: Fields are spelled in camelCase; unknown ones are mistakes.
* MAN-2: ``kind`` names the member of a union, in PascalCase, camelCase or all lower case.
* MAN-3: A member without mandatory fields may be written as its bare name: ``type: Timestamp``.
* MAN-4: Absent and null optional fields are None.

Source: ODF manifests (YAML and JSON); clauses of ``spec/manifests.md``.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NoReturn

from odf_protocol.errors import OdfError
from odf_protocol.events.data_schema import DataSchema
from odf_protocol.events.declaration import (
    BytesKind,
    EnumKind,
    Kind,
    ScalarKind,
    TableKind,
    TextKind,
    TimestampKind,
    UnionKind,
    VectorKind,
    declaration_of,
)
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.manifest.errors import Path, Place, Reader, find_nearest, list_words
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, describe
from odf_protocol.manifest.scalar_readers import (
    bytes_reader,
    enum_reader,
    integer_reader,
    read_bool,
    read_extra,
    read_text,
    read_timestamp,
    spellings_of,
)

_RENAMED: Final = {"jsonlines": "NdJson", "jsonl": "NdJson"}
"""What kinds were called before ODF's manifests had versions, in small letters."""


def read_kind(kind: Kind, node: Node, path: Path, place: Place) -> Any:
    """Read a value of a declared kind.

    Raises:
        ManifestError: The node does not follow the declaration.
    """
    return _reader_of(kind)(node, path, place)


def read_table(table: type[Any], node: Node, path: Path, place: Place) -> Any:
    """Read an object of a declared dataclass; errors as ``read_kind``."""
    return _reader_of(TableKind(table))(node, path, place)


# Readers of nested kinds are looked up when a node is read, not when a reader is built: data types contain themselves.
@cache
def _reader_of(kind: Kind) -> Reader:
    match kind:
        case TextKind():
            return read_text
        case TimestampKind():
            return read_timestamp
        case ScalarKind():
            return read_bool if kind.is_bool else integer_reader(kind)
        case EnumKind():
            return enum_reader(kind)
        case BytesKind():
            return bytes_reader(kind)
        case VectorKind():
            return _vector_reader(kind)
        case UnionKind():
            return _UnionReader(kind).read
        case TableKind():
            return read_extra if kind.type is ExtraAttributes else _table_reader(kind).read


def _vector_reader(kind: VectorKind) -> Reader:
    def read_list(node: Node, path: Path, place: Place) -> tuple[object, ...]:
        if type(node) is not ListNode:
            place.fail(node, path, "a list", describe(node))
        read_item = _reader_of(kind.element)
        return tuple([read_item(item, (path, index), place) for index, item in enumerate(node.items)])

    return read_list


@cache
def _table_reader(kind: TableKind) -> "_TableReader":
    return _TableReader(kind.type)


class _TableReader:
    """Reads one dataclass."""

    def __init__(self, table: type[Any]) -> None:
        self._table = table
        declared = declaration_of(table).fields
        self._by_name = {field.camel_name: field for field in declared}
        self._mandatory = [field for field in declared if not field.is_optional]
        self._absent: dict[str, object] = {field.name: None for field in declared if field.is_optional}

    def read(self, node: Node, path: Path, place: Place) -> object:
        """Read a map."""
        if type(node) is not MapNode:
            # ODF's own types came later than its DDL: what `schema` was then is `ddlSchema` now.
            is_ddl = self._table is DataSchema and type(node) is ListNode
            expected = f"a map with the fields of {self._table.__name__}"
            if is_ddl:
                expected += " ({fields: [{name: id, type: Int64}]}; a list of texts like 'id BIGINT' is ddlSchema)"
            place.fail(node, path, expected, describe(node), "ddlSchema" if is_ddl else None)
        return self.read_fields(node, node.entries, path, place)

    def read_fields(self, node: Node, entries: Iterable[tuple[ScalarNode, Node]], path: Path, place: Place) -> object:
        """Read given entries; ``node`` is where missing fields are missed."""
        values = dict(self._absent)
        for key, value in entries:
            field = self._by_name.get(key.text)
            if field is None:
                self._fail_unknown(key, path, place)
            if field.is_optional and type(value) is ScalarNode and value.is_null:
                continue
            values[field.name] = _reader_of(field.kind)(value, (path, key.text), place)
        for field in self._mandatory:
            if field.name not in values:
                expected = f"the field {field.camel_name!r} of {self._table.__name__}"
                place.fail(node, path, expected, _found_without(node))
        try:
            return self._table(**values)
        except OdfError as error:
            place.fail(node, path, f"a valid {self._table.__name__}", str(error))

    def _fail_unknown(self, key: ScalarNode, path: Path, place: Place) -> NoReturn:
        name = self._table.__name__
        known = list(self._by_name)
        expected = f"a field of {name} ({list_words(known)})" if known else f"no more fields, {name} has none"
        place.fail(key, path, expected, repr(key.text), find_nearest(key.text.replace("_", ""), known))


def _found_without(node: Node) -> str:
    if isinstance(node, MapNode) and node.entries:
        return f"only {list_words(key.text for key, _ in node.entries)}"
    return describe(node)


class _UnionReader:
    """Reads the member that ``kind`` names."""

    def __init__(self, kind: UnionKind) -> None:
        self._words = [kind.name_of(member) for member in kind.members]
        self._by_spelling = spellings_of((kind.name_of(member), member) for member in kind.members)
        self._name = kind.name

    def read(self, node: Node, path: Path, place: Place) -> object:
        """Read a map with ``kind``, or the short form."""
        if type(node) is ScalarNode:
            # A member with mandatory fields fails by itself when it gets none.
            return self._member_reader(node, path, place).read_fields(node, (), path, place)
        if type(node) is not MapNode:
            place.fail(node, path, f"a {self._name}", describe(node))
        word = next((value for key, value in node.entries if key.text == "kind"), None)
        if word is None:
            expected = f"the field 'kind' of {self._name} ({list_words(self._words)})"
            place.fail(node, path, expected, _found_without(node))
        reader = self._member_reader(word, (path, "kind"), place)
        others = (entry for entry in node.entries if entry[1] is not word)
        return reader.read_fields(node, others, path, place)

    def _member_reader(self, word: Node, path: Path, place: Place) -> _TableReader:
        member = self._by_spelling.get(word.text) if type(word) is ScalarNode else None
        if member is None:
            nearest = None
            if isinstance(word, ScalarNode):
                renamed = _RENAMED.get(word.text.lower())
                nearest = renamed if renamed in self._words else find_nearest(word.text, self._words)
            expected = f"a kind of {self._name} ({list_words(self._words)})"
            place.fail(word, path, expected, describe(word), nearest)
        return _table_reader(TableKind(member))
