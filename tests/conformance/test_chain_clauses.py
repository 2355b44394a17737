"""spec/chain.md, the rules and the tests speak of the same clauses."""

import re
from pathlib import Path

from odf_protocol.chain.rules import FIRST_BLOCK_RULES, RULES

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "spec" / "chain.md").read_text()
RULE_ROW = re.compile(
    r"^\| (CHAIN-\d+) \| ([a-z0-9-]+) \| (.+) \| (ODF|ours)(?: \((.+)\))? \| (yes|no) \|$", re.MULTILINE
)
CLAUSES = re.findall(r"^\| (CHAIN-\d+) \|", SPEC, re.MULTILINE)
ALL_RULES = (*FIRST_BLOCK_RULES, *RULES)


def test_clauses_are_numbered_once_and_in_order() -> None:
    assert [f"CHAIN-{n + 1}" for n in range(len(CLAUSES))] == CLAUSES


def test_every_rule_is_in_the_spec_with_its_name_and_whom_it_binds() -> None:
    stated = {(clause, name): binds == "yes" for clause, name, _rule, _by, _error, binds in RULE_ROW.findall(SPEC)}
    assert {(rule.clause, rule.name): rule.binds_foreign for rule in ALL_RULES} == stated


def test_rules_that_odf_demands_say_how_odf_calls_the_breach() -> None:
    demanded = {clause: error for clause, _name, _rule, by, error, _binds in RULE_ROW.findall(SPEC) if by == "ODF"}
    for rule in ALL_RULES:
        if rule.clause in demanded:
            assert rule.odf_name is not None
            assert rule.odf_name.split(":")[0] == demanded[rule.clause]


def test_every_clause_is_named_by_a_test() -> None:
    named: set[str] = set()
    for path in (ROOT / "tests").glob("*/test_*.py"):
        if path != Path(__file__):
            named |= set(re.findall(r"\bCHAIN-\d+\b", path.read_text()))
    assert set(CLAUSES) <= named


def test_every_clause_named_in_code_is_in_the_spec() -> None:
    named: set[str] = set()
    for path in (ROOT / "protocol").rglob("*.py"):
        named |= set(re.findall(r"\bCHAIN-\d+\b", path.read_text()))
    assert named <= set(CLAUSES)
