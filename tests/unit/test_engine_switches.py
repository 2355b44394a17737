"""SWITCH-1 to SWITCH-4: the page of switches says what the code fixes, and leaves alone."""

import re

from datafusion import SessionConfig, SessionContext

from odf_engines.datafusion import settings
from odf_spark.launch import ANY_ORDER, ONE_ORDER, SETTINGS
from support.engine_switches import (
    LISTS,
    PAGE,
    as_lines,
    as_reported,
    missing_on_page,
    stated_families,
    stated_values,
)

ROW = re.compile(r"^\| `([\w.]+)` \| `(\S+)` \| `(\S+)` \|", re.MULTILINE)


def settings_of_datafusion(given: dict[str, str]) -> dict[str, str | None]:
    config = SessionConfig({**given, "datafusion.catalog.information_schema": "true"})
    rows = SessionContext(config).sql("SELECT name, value FROM information_schema.df_settings").to_pylist()
    return {row["name"]: row["value"] for row in rows}


def test_page_tells_what_is_fixed_where_order_matters_and_left_alone_where_it_does_not_switch_3() -> None:
    stated = {name: (fixed, free) for name, fixed, free in ROW.findall(PAGE.read_text())}
    assert stated == {name: (ONE_ORDER[name], ANY_ORDER[name]) for name in ANY_ORDER}


def test_every_session_begins_in_the_fixed_order_switch_2() -> None:
    assert ONE_ORDER.items() <= SETTINGS.items()


def test_every_setting_of_datafusion_is_known_with_its_default_switch_4() -> None:
    """What a later DataFusion brings, takes away or changes makes this fail until its page was looked at."""
    found = settings_of_datafusion({})
    assert sorted({*as_lines(found).splitlines()} ^ {*(LISTS / "datafusion.txt").read_text().splitlines()}) == []
    assert missing_on_page("datafusion", found) == []
    assert len(found) > 100


def test_settings_of_datafusion_stand_at_what_the_page_says_switch_4() -> None:
    stated = stated_values("datafusion")
    found = settings_of_datafusion(dict(settings.SETTINGS))
    assert {name: as_reported(found[name]) for name in stated} == stated


def test_page_names_no_setting_and_no_family_that_no_engine_has_switch_4() -> None:
    for engine in ("spark", "datafusion"):
        known = [line.partition(" = ")[0] for line in (LISTS / f"{engine}.txt").read_text().splitlines()]
        assert sorted({*stated_values(engine)} - {*known}) == []
        unused = [each for each in stated_families(engine) if not re.search(_pattern(each), "\n".join(known), re.M)]
        assert unused == []


def _pattern(family: str) -> str:
    return "^" + re.escape(family).replace(r"\*", ".*") + "( =|$)"
