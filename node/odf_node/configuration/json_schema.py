"""The declaration of the settings as a JSON schema."""

from typing import TYPE_CHECKING, Any

from odf_node.configuration.declaration import LISTS, MAX_LISTED, SECTIONS, rule_of, settings_of, type_of

if TYPE_CHECKING:
    from dataclasses import Field


def make_json_schema() -> dict[str, Any]:
    """Write the declaration as a JSON schema, for editors and for those who make files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of odf-node",
        "type": "object",
        "additionalProperties": False,
        "properties": {section: _section_schema(section, kind) for section, kind in SECTIONS.items()}
        | {
            section: {"type": "array", "maxItems": MAX_LISTED, "items": _section_schema(section, kind)}
            for section, kind in LISTS.items()
        },
    }


def _section_schema(section: str, kind: type) -> dict[str, Any]:
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip(),
        "additionalProperties": False,
        "properties": {name: _setting_schema(declared) for name, declared in settings_of(section).items()},
    }


def _setting_schema(declared: "Field[Any]") -> dict[str, Any]:
    rule, kind = rule_of(declared), type_of(declared)
    schema: dict[str, Any] = {"type": "string" if kind == "path" else kind, "description": rule.meaning}
    if kind == "integer":
        schema |= {"minimum": rule.lowest, "maximum": rule.highest}
    if rule.choices:
        schema["enum"] = list(rule.choices)
    if declared.default is not None:
        schema["default"] = declared.default
    return schema
