"""SWITCH-1 to SWITCH-3: the page of switches says what the code fixes, and leaves alone."""

import re
from pathlib import Path

from odf_engines.spark.launch import ANY_ORDER, ONE_ORDER, SETTINGS

PAGE = Path(__file__).parents[2] / "spec/extensions/engine-switches.md"
ROW = re.compile(r"^\| `([\w.]+)` \| `(\S+)` \| `(\S+)` \|", re.MULTILINE)


def test_page_tells_what_is_fixed_where_order_matters_and_left_alone_where_it_does_not_switch_3() -> None:
    stated = {name: (fixed, free) for name, fixed, free in ROW.findall(PAGE.read_text())}
    assert stated == {name: (ONE_ORDER[name], ANY_ORDER[name]) for name in ANY_ORDER}


def test_every_session_begins_in_the_fixed_order_switch_2() -> None:
    assert ONE_ORDER.items() <= SETTINGS.items()
