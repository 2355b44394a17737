"""The part of JSON Schema that our own schemas use, enough to hold values against them."""

from typing import Any

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_valid(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Whether ``value`` follows ``schema``; references lead into ``root``. Unknown keywords are an error."""
    return all(_follows(keyword, argument, value, schema, root) for keyword, argument in schema.items())


def _follows(keyword: str, argument: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    match keyword:
        case "$ref":
            return is_valid(value, root["$defs"][argument.removeprefix("#/$defs/")], root)
        case "oneOf":
            return sum(is_valid(value, option, root) for option in argument) == 1
        case "anyOf":
            return any(is_valid(value, option, root) for option in argument)
        case "const":
            return bool(value == argument)
        case "enum":
            return value in argument
        case "type":
            if argument == "integer":
                return isinstance(value, int) and not isinstance(value, bool)
            return isinstance(value, _TYPES[argument])
        case "minimum":
            return not isinstance(value, int) or value >= argument
        case "maximum":
            return not isinstance(value, int) or value <= argument
        case "items":
            return not isinstance(value, list) or all(is_valid(item, argument, root) for item in value)
        case "required":
            return not isinstance(value, dict) or set(argument) <= set(value)
        case "properties":
            return not isinstance(value, dict) or all(
                is_valid(value[name], part, root) for name, part in argument.items() if name in value
            )
        case "additionalProperties":
            return argument or not isinstance(value, dict) or set(value) <= set(schema["properties"])
        case "$schema" | "$defs" | "title" | "description" | "format" | "contentEncoding":
            return True
    raise AssertionError(f"unknown keyword {keyword}")
