"""The table in ``spec/extensions/sandbox-escapes.md`` is the suite, no more and no less."""

from pathlib import Path

from support import escape_program
from support.escape_table import OUTPUTS, iter_lines
from support.escapes import PROBES
from support.limit_escapes import ATTEMPTS
from support.sql_escapes import SQL_PROBES

ROOT = Path(__file__).parent.parent.parent
OUTPUT_TESTS = ROOT / "tests" / "unit" / "test_engine_outputs.py"


def test_table_is_made_from_the_suite():
    assert (ROOT / "spec" / "extensions" / "sandbox-escapes.md").read_text() == "\n".join(iter_lines()) + "\n"


def test_every_attempt_of_the_program_has_a_place_in_the_table():
    assert {probe.name for probe in PROBES} == set(escape_program.ATTEMPTS)


def test_every_output_in_the_table_has_its_test():
    text = OUTPUT_TESTS.read_text()
    assert [test for test in OUTPUTS.values() if f"def {test}(" not in text] == []


def test_there_are_more_attempts_than_promised():
    assert len(SQL_PROBES) >= 26
    assert len(PROBES) + len(ATTEMPTS) + len(OUTPUTS) >= 40
