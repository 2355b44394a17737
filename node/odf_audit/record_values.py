"""What a record says, read as what this program writes: of a restored backup anybody may have written it.

Source: clause AUDIT-19 in ``spec/plug-ins/audit.md``.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from odf_protocol.errors import OdfError
from odf_protocol.timestamp import Timestamp

_MAX_NUMBER: Final = (1 << 53) - 1
"""Of a block, a process or a count. Source: CHAIN-6."""


def read_record(record: str | None) -> dict[str, Any]:
    """Read the JSON of a record; members that this program writes in another way are left out."""
    try:
        told = json.loads(record or "{}")
    except (ValueError, RecursionError):
        return {}
    return _fitting(told, _MEMBERS)


def _fitting(told: object, members: Mapping[str, Callable[[Any], bool]]) -> dict[str, Any]:
    if not isinstance(told, dict):
        return {}
    found = {name: value for name, value in told.items() if name in members and members[name](value)}
    if "inputs" in found:
        found["inputs"] = [_fitting(each, _MEMBERS_OF_INPUTS) for each in found["inputs"]]
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return type(value) is int and -1 <= value <= _MAX_NUMBER


def _is_flag(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and Timestamp.parse(value) is not None
    except OdfError:
        return False


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_MEMBERS: Final = {
    **dict.fromkeys(("name", "door", "work", "agent", "thread", "application", "caller", "what"), _is_text),
    **dict.fromkeys(("before", "from"), _is_text),
    **dict.fromkeys(("user", "host", "folder", "python", "version", "script", "scriptHash"), _is_text),
    **dict.fromkeys(("gitCommit", "rerunOf", "node"), _is_text),
    **dict.fromkeys(("number", "newest", "first", "count", "pid", "reads"), _is_number),
    **dict.fromkeys(("wordsShortened", "hasChanges"), _is_flag),
    "asOf": _is_time,
    "words": _are_texts,
    "inputs": _is_list,
}
_MEMBERS_OF_INPUTS: Final = {
    **dict.fromkeys(("id", "name", "head", "thread"), _is_text),
    "number": _is_number,
    "asOf": _is_time,
}
