"""The table in ``spec/extensions/sandbox-escapes.md`` is the suite, no more and no less."""

from pathlib import Path

from support import escape_program
from support.escape_table import OUTPUTS, iter_lines
from support.escapes import PROBES
from support.limit_escapes import ATTEMPTS
from support.sql_escapes import FIRST_SERIES, SQL_PROBES, STOPPED_BY_SWITCHES

ROOT = Path(__file__).parent.parent.parent
OUTPUT_TESTS = [
    ROOT / "tests" / name for name in ("unit/test_engine_outputs.py", "integration/engines/test_output_reader.py")
]


def test_table_is_made_from_the_suite():
    assert (ROOT / "spec" / "extensions" / "sandbox-escapes.md").read_text() == "\n".join(iter_lines()) + "\n"


def test_every_attempt_of_the_program_has_a_place_in_the_table():
    assert {probe.name for probe in PROBES} == set(escape_program.ATTEMPTS)


def test_every_output_in_the_table_has_its_test():
    text = "".join(path.read_text() for path in OUTPUT_TESTS)
    assert [test for test in OUTPUTS.values() if f"def {test}(" not in text] == []


def test_first_series_is_an_attempt_each_and_the_switches_stop_those_they_stopped():
    probes = {probe.name: probe for probe in SQL_PROBES}
    series = [probes[name] for name in FIRST_SERIES]
    assert len(set(FIRST_SERIES)) == len(series) == 26
    of_the_three_switches = [each.proof in ("SQL_RESTRICTED_MODE", "TABLE_OR_VIEW_NOT_FOUND") for each in series]
    assert of_the_three_switches == [number < STOPPED_BY_SWITCHES for number in range(len(series))]
    assert [each.name for each in series if not each.complaint] == []


def test_there_are_more_attempts_than_promised():
    assert len(SQL_PROBES) > len(FIRST_SERIES)
    assert len(PROBES) + len(ATTEMPTS) + len(OUTPUTS) >= 40
