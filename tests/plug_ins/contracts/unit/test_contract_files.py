"""Contract files: what is checked, what is not and is named, and what is rejected with its place."""

import time
from itertools import pairwise

import pytest

from odf_contracts.bounds import Bound, BoundTest
from odf_contracts.reading import MAX_BOUNDS, MAX_BYTES, MAX_RULES, parse_contract
from odf_contracts.rules import ContractObject, HoldAction, MeasureKind
from odf_protocol.manifest.errors import ManifestError

HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    physicalName: orders_1
    properties:
      - name: id
        primaryKey: true
        primaryKeyPosition: 2
      - name: shop
        primaryKey: true
        primaryKeyPosition: 1
        physicalType: varchar(2)
      - name: amount
        physicalName: amt
        logicalType: number
        required: true
"""
WHOLE = (
    HEAD
    + """\
        logicalTypeOptions: {minimum: 0, exclusiveMaximum: 100, format: f64}
        unique: false
        quality:
          - {metric: nullValues, mustBeLessThan: 1, unit: percent, severity: warning, description: few}
          - {type: text, description: Amounts are plausible.}
          - type: custom
            engine: soda
            implementation: |
              type: duplicate_percent
    quality:
      - metric: rowCount
        mustBeBetween: [100, 120]
      - {rule: duplicateCount, arguments: {properties: [shop, amount]}, mustBeLessOrEqualTo: 5}
      - {type: sql, query: "SELECT count(*) FROM {object}", mustBeGreaterThan: 3, mustNotBe: 5}
      - {metric: rowCount}
    relationships: [{type: foreignKey}]
slaDefaultElement: orders.amount
slaProperties:
  - {property: Latency, value: 4, unit: h}
  - {property: frequency, value: 1, unit: d, element: orders}
  - {property: retention, value: 3, unit: y}
  - {property: latency, value: 1, unit: d, element: other_table.x}
price: {priceAmount: 9.95}
team: [{username: daustin, role: Owner}]
servers: [{server: p, type: postgres}]
customProperties:
  - {property: odf-node.action, value: block}
  - {property: other, value: 1}
"""
)


def read(text: str) -> ContractObject:
    (table,) = parse_contract(text.encode(), "c.yaml").objects
    return table


def test_rules_of_a_whole_file() -> None:
    """CONTRACT-1, CONTRACT-3 to CONTRACT-6: columns, options, metrics, queries and service levels."""
    found = {(each.line, each.measure.kind): each for each in read(WHOLE).rules}
    assert [(line, str(kind)) for line, kind in found] == [
        (10, "schema"),
        (13, "schema"),
        (17, "schema"),
        (20, "nullValues"),
        (21, "invalidValues"),
        (24, "nullValues"),
        (11, "duplicateValues"),
        (31, "rowCount"),
        (33, "duplicateValues"),
        (34, "sql"),
        (39, "latency"),
        (40, "frequency"),
    ]
    assert found[11, MeasureKind.DUPLICATES].measure.columns == ("shop", "id")
    assert found[33, MeasureKind.DUPLICATES].measure.columns == ("shop", "amt")
    limits = found[21, MeasureKind.INVALID].measure
    assert (limits.columns, limits.low, limits.high, limits.excludes_high) == (("amt",), 0.0, 100.0, True)
    assert found[24, MeasureKind.NULLS].only_warns
    assert found[24, MeasureKind.NULLS].is_percent
    assert not found[20, MeasureKind.NULLS].only_warns
    assert found[34, MeasureKind.QUERY].bound.describe() == "anything but 5 and more than 3"
    assert found[39, MeasureKind.LATENCY].measure.columns == ("amt",)
    assert found[39, MeasureKind.LATENCY].bound.describe() == "at most 14,400"
    assert parse_contract(WHOLE.encode(), "c.yaml").action is HoldAction.BLOCK


def test_what_is_not_checked_is_named_by_line() -> None:
    """CONTRACT-1."""
    assert [(each.line, each.path) for each in read(WHOLE).unchecked] == [
        (16, "schema[0].properties[1].physicalType"),
        (21, "schema[0].properties[2].logicalTypeOptions.format"),
        (25, "schema[0].properties[2].quality[1]"),
        (26, "schema[0].properties[2].quality[2]"),
        (35, "schema[0].quality[3]"),
        (36, "schema[0].relationships"),
        (41, "slaProperties[2]"),
        (42, "slaProperties[3]"),
    ]


def quality(entry: str) -> str:
    return f"{HEAD}        quality:\n          - {entry}\n"


def own(implementation: str) -> str:
    return f"{HEAD}    quality:\n      - {{type: custom, engine: odf-node, implementation: {implementation}}}\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (HEAD.replace("v3.1.0", "v2.2.2"), 1, "apiVersion: expected v3.0.0"),
        (HEAD.replace("DataContract", "DataContrakt"), 2, "did you mean 'DataContract'?"),
        (HEAD.replace("status:", "statuss:"), 5, "did you mean 'status'?"),
        (HEAD.replace("required: true", "requierd: true"), 20, "did you mean 'required'?"),
        (HEAD.replace("required: true", "required: yes"), 20, "expected one of true, false"),
        (HEAD.replace("logicalType: number", "logicalType: nummer"), 19, "did you mean 'number'?"),
        (HEAD.replace("name: shop", "name: id"), 13, "expected each property once"),
        (quality("{metric: nullValue, mustBe: 0}"), 22, "did you mean 'nullValues'?"),
        (quality("{metric: nullValues, mustBeLesThan: 0}"), 22, "did you mean 'mustBeLessThan'?"),
        (quality("{metric: nullValues, mustBe: few}"), 22, "expected a number, found few"),
        (quality("{metric: nullValues, mustBe: .nan}"), 22, "expected a number"),
        (quality("{metric: invalidValues, mustBe: 0}"), 22, "an argument validValues or pattern"),
        (quality("{metric: rowCount, mustBe: 0}"), 22, "a metric of a property"),
        (quality("{type: sql, mustBe: 0}"), 22, "expected a field query"),
        (quality("{metric: nullValues, unit: per-cent, mustBe: 0}"), 22, "did you mean 'percent'?"),
        (own("{metric: eventTimeAheed}"), 22, "did you mean 'eventTimeAhead'?"),
        (own("{metric: drift, measure: psi, mustBeLessThan: 1}"), 22, "this one is of a property"),
        (own("{metric: eventTimeAhead, tolerance: -1}"), 22, "0 or more"),
        (own("{metric: rowsOfPrevious}"), 22, "expected one of mustBe"),
        (HEAD + "slaProperties: [{property: latency, value: 1}]\n", 21, "a field unit"),
        (HEAD + "slaProperties: [{property: latency, value: 1, unit: fortnight}]\n", 21, "a unit of time"),
        (HEAD + "slaProperties: [{property: latency, value: 0, unit: d}]\n", 21, "more than 0"),
    ],
)
def test_what_does_not_exist_is_rejected_with_line_field_and_nearest_name(text: str, line: int, says: str) -> None:
    """CONTRACT-2."""
    with pytest.raises(ManifestError) as caught:
        parse_contract(text.encode(), "c.yaml")
    assert says in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (quality("{metric: nullValues, mustBeLessThan: 0, mustBeGreaterThan: 5}"), "a bound that allows some number"),
        (quality("{metric: nullValues, mustBeBetween: [5, 4]}"), "the smaller number first"),
        (quality("{metric: nullValues, unit: percent, mustBeGreaterThan: 100}"), "some share of 0 to 100 percent"),
        (quality("{metric: nullValues, mustBeGreaterThan: 5}"), "what line 20 allows too (exactly 0)"),
        (quality("{metric: nullValues, mustBeLessThan: 0}"), "allows too"),
        (HEAD + "        logicalTypeOptions: {minimum: 5, maximum: 4}\n", "at least the minimum 5, found 4"),
        (HEAD + "        logicalTypeOptions: {minLength: 5, maxLength: 4}\n", "at least the minLength 5, found 4"),
    ],
)
def test_contradictions_are_rejected(text: str, says: str) -> None:
    """CONTRACT-2."""
    with pytest.raises(ManifestError) as caught:
        parse_contract(text.encode(), "c.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        b"x" * (MAX_BYTES + 1),
        b"\xff\xfe",
        b"",
        b"a: &a [1]\nb: *a\n",
        b"[" * 5000,
        b"- 1",
        HEAD.encode() * 2,
        (HEAD + "        quality:\n" + "          - {metric: nullValues, mustBe: 0}\n" * (MAX_RULES + 1)).encode(),
    ],
)
def test_hostile_files_are_rejected(raw: bytes) -> None:
    """CONTRACT-2: whatever the bytes are."""
    with pytest.raises(ManifestError):
        parse_contract(raw, "c.yaml")


def test_share_of_the_version_before_may_be_above_all_of_it() -> None:
    """CONTRACT-5: a dataset may double."""
    (rule,) = [each for each in read(own("{metric: rowsOfPrevious, mustBeGreaterThan: 120}")).rules if each.line == 22]
    assert rule.bound.describe() == "more than 120"


def test_bounds_of_one_measure_are_counted_before_they_are_compared() -> None:
    """CONTRACT-2: comparing them is cubic in their number; a file of 1 MiB is rejected at once."""
    entry = "          - {metric: nullValues, mustBeLessThan: 9}\n"
    allowed = HEAD.replace("        required: true\n", "        quality:\n")
    read(allowed + entry * MAX_BOUNDS)
    with pytest.raises(ManifestError, match="at most 64 bounds of one measure, the first in line 21") as caught:
        read(allowed + entry * (MAX_BOUNDS + 1))
    assert caught.value.line == 21 + MAX_BOUNDS
    began = time.process_time()
    with pytest.raises(ManifestError, match="at most 2,000 rules"):
        read(allowed + entry * ((MAX_BYTES - len(allowed)) // len(entry)))
    levels = "{property: retention, value: 1, unit: d}, " * 10_000
    tables = "".join(f"  - {{name: t{number}}}\n" for number in range(10_000))
    with pytest.raises(ManifestError, match="at most 2,000 rules"):
        read(f"{HEAD}{tables}slaProperties: [{levels}]\n")
    assert time.process_time() - began < 60  # guess: it did not end; reading so many lines takes some seconds


def test_bounds_allow_what_their_operators_say() -> None:
    """CONTRACT-3, against the operators of Python."""
    operators = {
        "mustBe": lambda value: value == 2,
        "mustNotBe": lambda value: value != 2,
        "mustBeGreaterThan": lambda value: value > 2,
        "mustBeGreaterOrEqualTo": lambda value: value >= 2,
        "mustBeLessThan": lambda value: value < 2,
        "mustBeLessOrEqualTo": lambda value: value <= 2,
        "mustBeBetween": lambda value: 2 <= value <= 4,
        "mustNotBeBetween": lambda value: not 2 <= value <= 4,
    }
    numbers = [-1.0, 1.5, 2.0, 3.0, 4.0, 4.5]
    for name, expected in operators.items():
        bound = Bound((BoundTest(name, (2.0, 4.0) if name.endswith("Between") else (2.0,)),))
        assert [bound.allows(each) for each in numbers] == [expected(each) for each in numbers], name
        assert not bound.allows(float("nan"))
    for low, high in pairwise(numbers):
        open_between = Bound((BoundTest("mustBeGreaterThan", (low,)), BoundTest("mustBeLessThan", (high,))))
        assert not open_between.is_empty()
        assert Bound((*open_between.tests, BoundTest("mustNotBeBetween", (low, high)))).is_empty()
