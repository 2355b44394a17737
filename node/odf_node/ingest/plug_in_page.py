"""The page about readers, converters, validators and sinks of this package, made of what they say of themselves.

``python -m odf_node.ingest.plug_in_page > spec/guides/plug-ins.md`` writes it.

Source: clauses READ-3 in ``spec/readers.md``, CONV-3 in ``spec/conversion.md``, VALID-3 in ``spec/validation.md``.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any

from odf_engines.conversion.contract import Converter
from odf_engines.plug_in_names import CONVERTERS, READERS, SINKS, VALIDATORS, PlugInNames
from odf_engines.readers.contract import Reader
from odf_engines.validation.contract import Validator
from odf_engines.validation.plug_ins import load_plug_in, parameter_schema
from odf_node.ports.sinks import Sink

_INTRODUCTION = """\
# Readers, converters, validators and sinks, and their parameters

This page is made of the plug-ins themselves. How they are declared, and what errors they give:
[readers](../readers.md), [converters](../conversion.md), [validators](../validation.md),
[sinks](../plug-ins/corrections.md). Each declaration also has `kind`, and that of a validator may have `severity`.
How to write one: [validators.md](validators.md)."""


def write_page() -> str:
    """Write the page."""
    parts = [
        _INTRODUCTION,
        *_section("Readers", Reader, READERS),
        *_section("Converters", Converter, CONVERTERS),
        *_section("Validators", Validator, VALIDATORS),
        *_section("Sinks for bad rows", Sink, SINKS),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, base: type, kinds: PlugInNames) -> Iterator[str]:
    yield f"## {title}"
    for name in kinds.installed():
        if (place := kinds.find_place(name)) is not None and kinds.is_ours(name):
            kind = load_plug_in(base, name, *place)
            yield "\n\n".join(
                [f"### `{name}`", _reported(kind), _reported(kind.Parameters), _table(parameter_schema(kind))]
            )


def _reported(what: Any) -> str:
    return inspect.cleandoc(what.__doc__).replace("``", "`")


def _table(schema: dict[str, Any]) -> str:
    if not schema["properties"]:
        return "No parameters."
    rows = ["| parameter | a | without it |", "|---|---|---|"]
    for name, described in schema["properties"].items():
        default = json.dumps(described.get("default"))
        without = "refused" if name in schema.get("required", ()) else "none" if default == "null" else f"`{default}`"
        rows.append(f"| `{name}` | {_type_name(described)} | {without} |")
    return "\n".join(rows)


def _type_name(described: dict[str, Any]) -> str:
    if "anyOf" in described:
        return " or ".join(_type_name(each) for each in described["anyOf"] if each.get("type") != "null")
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}
    match described.get("type"):
        case "array":
            return f"list: {_type_name(described['items'])}"
        case "object":
            return f"map: {_type_name(described['additionalProperties'])}"
    return words[described["type"]]


def main() -> None:
    """Write the page to standard output."""
    sys.stdout.write(write_page())


if __name__ == "__main__":
    main()
