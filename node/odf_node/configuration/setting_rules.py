"""What a setting may be: type and bounds of its value, its meaning, and whether a running node takes a new one."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

HIGHEST_NUMBER: Final = 2**53
"""Whole numbers up to here are the same in every reader of TOML and JSON."""


@dataclass(frozen=True, slots=True)
class SettingRule:
    """What a setting may be: numbers have bounds, words may have ``choices`` or be empty; ``reloads``: by SIGHUP."""

    meaning: str
    reloads: bool
    lowest: int = 0
    highest: int = HIGHEST_NUMBER
    choices: tuple[str, ...] = ()
    may_be_empty: bool = False


def declare(
    default: Any,
    meaning: str,
    *,
    reloads: bool = True,
    lowest: int = 0,
    highest: int = HIGHEST_NUMBER,
    choices: tuple[str, ...] = (),
    may_be_empty: bool = False,
) -> Any:
    """Declare a setting of a section, which is a dataclass."""
    rule = SettingRule(meaning, reloads, lowest, highest, choices, may_be_empty)
    return field(default=default, metadata=MappingProxyType({"rule": rule}))
