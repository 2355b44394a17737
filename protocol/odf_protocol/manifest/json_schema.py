"""JSON Schema of manifests, made from the declarations, for editors and for programs that check before they send.

It accepts what the reader accepts, as far as JSON Schema can say it: three spellings of names, short forms, null for
absence. It does not say the snapshot rules, nor that texts in YAML need no quotes.

Source: JSON Schema draft 2020-12.
"""

import inspect
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from odf_protocol.events import Event
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
    union_kind_of,
)
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.manifest.documents import VERSIONS, DatasetSnapshot
from odf_protocol.manifest.scalar_readers import spellings_of
from odf_protocol.wire.envelope import MetadataBlock

Schema = dict[str, Any]

_EVENT: Final = union_kind_of(Event)
_CONTENTS: Final[dict[str, Kind]] = {
    "DatasetSnapshot": TableKind(DatasetSnapshot),
    "MetadataEvent": _EVENT,
    "MetadataBlock": TableKind(MetadataBlock),
}


def manifest_schema() -> Schema:
    """Build the schema of one manifest of any kind."""
    definitions: dict[str, Schema] = {}
    manifests = [_manifest(kind, content, definitions) for kind, content in _CONTENTS.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Open Data Fabric manifest",
        "description": "Made from the declarations in odf_protocol.events; do not edit.",
        "oneOf": manifests,
        "$defs": dict(sorted(definitions.items())),
    }


def _manifest(kind: str, content: Kind, definitions: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": {
            "kind": {"const": kind},
            "version": {"enum": list(VERSIONS[kind])},
            "content": _schema_of(content, definitions),
        },
        "required": ["kind", "version", "content"],
        "additionalProperties": False,
    }


def _schema_of(kind: Kind, definitions: dict[str, Schema]) -> Schema:
    match kind:
        case TextKind():
            return {"type": "string"}
        case TimestampKind():
            return {"type": "string", "format": "date-time"}
        case ScalarKind():
            if kind.is_bool:
                return {"type": "boolean"}
            return {"type": "integer", "minimum": kind.scalar.minimum, "maximum": kind.scalar.maximum}
        case EnumKind():
            return _reference(kind.enum.__name__, definitions, lambda: _enum(kind))
        case BytesKind():
            return _bytes(kind)
        case VectorKind():
            return {"type": "array", "items": _schema_of(kind.element, definitions)}
        case UnionKind():
            return _reference(kind.name, definitions, lambda: _union(kind, definitions))
        case TableKind():
            if kind.type is ExtraAttributes:
                return {"type": "object", "description": "Free-form attributes by reverse-domain name."}
            return _reference(kind.type.__name__, definitions, lambda: _table(kind, definitions))


def _reference(name: str, definitions: dict[str, Schema], make: Callable[[], Schema]) -> Schema:
    """Refer to a definition, making it at the first use; data types refer to themselves."""
    if name not in definitions:
        definitions[name] = {}
        definitions[name].update(make())
    return {"$ref": f"#/$defs/{name}"}


def _enum(kind: EnumKind) -> Schema:
    return {"description": _first_line(kind.enum), "enum": list(spellings_of((member.text, 0) for member in kind.enum))}


def _bytes(kind: BytesKind) -> Schema:
    if kind.type is bytes:
        return {"type": "string", "contentEncoding": "base64"}
    return {"type": "string", "description": _first_line(kind.type)}


def _table(kind: TableKind, definitions: dict[str, Schema], names: list[str] | None = None) -> Schema:
    """A table's schema; ``names`` are the spellings of its ``kind`` where it is a member of a union."""
    declared = declaration_of(kind.type).fields
    properties: Schema = {} if names is None else {"kind": {"enum": names}}
    for field in declared:
        schema = _schema_of(field.kind, definitions)
        properties[field.camel_name] = {"anyOf": [schema, {"type": "null"}]} if field.is_optional else schema
    required = [] if names is None else ["kind"]
    return {
        "description": _first_line(kind.type),
        "type": "object",
        "properties": properties,
        "required": required + [field.camel_name for field in declared if not field.is_optional],
        "additionalProperties": False,
    }


def _union(kind: UnionKind, definitions: dict[str, Schema]) -> Schema:
    short: list[str] = []
    members: list[Schema] = []
    for member in kind.members:
        names = list(spellings_of([(kind.name_of(member), 0)]))
        # A member of a union is a definition of its own: as a plain table it would lack its kind.
        make = partial(_table, TableKind(member), definitions, names)
        members.append(_reference(member.__name__, definitions, make))
        if all(field.is_optional for field in declaration_of(member).fields):
            short += names
    if short:
        members.append({"description": "Short form of members without mandatory fields.", "enum": short})
    return {"oneOf": members}


def _first_line(documented: type[Any]) -> str:
    return (inspect.getdoc(documented) or "").split("\n")[0]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n")
