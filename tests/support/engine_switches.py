"""The page of switches (``spec/extensions/engine-switches.md``) as tests read it, and what engines have."""

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path(__file__).parents[2] / "spec/extensions/engine-switches.md"
LISTS = Path(__file__).parent / "engine_settings"
"""Every setting of an engine's version and its default, a line each: what is compared with the engine that is here."""

_NAMED = re.compile(r"^\| `([\w.]+)` \| `([^`]+)` \|", re.MULTILINE)
_FAMILIES = re.compile(r"^\| ((?:`[\w.*]+` ?)+)\|", re.MULTILINE)
_OF_THE_MACHINE = frozenset({"spark.sql.warehouse.dir", "datafusion.execution.planning_concurrency"})
"""Settings whose defaults are told by the machine, or by where a program was started."""

NOT_SET = "not set"


def stated_values(engine: str) -> dict[str, str]:
    """What the page says that settings stand at, by the beginning of their names."""
    return {name: value for name, value in _NAMED.findall(PAGE.read_text()) if name.startswith(f"{engine}.")}


def stated_families(engine: str) -> list[str]:
    """Patterns of the families of settings on the page."""
    found = (each.strip("`") for row in _FAMILIES.findall(PAGE.read_text()) for each in row.split())
    return [each for each in found if each.startswith(f"{engine}.")]


def missing_on_page(engine: str, names: Collection[str]) -> list[str]:
    """Settings that the page neither names nor has in a family."""
    values, families = stated_values(engine), stated_families(engine)
    return [each for each in sorted(names) if each not in values and not any(fnmatchcase(each, f) for f in families)]


def as_reported(value: str | None) -> str:
    """What a setting stands at, as the page says it."""
    return NOT_SET if value in {None, "", "<undefined>"} else str(value)


def as_lines(settings: Mapping[str, str | None]) -> str:
    """A list as it is kept."""
    reported = {
        name: "(machine)" if name in _OF_THE_MACHINE else as_reported(value) for name, value in settings.items()
    }
    return "".join(f"{name} = {value}\n" for name, value in sorted(reported.items()))
