"""Clause PLAN-19: steps whose query fixes no order are compared as bags of rows, to the bit."""

import datetime as dt
import struct
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_node.rows.slice_process import SliceProcess
from odf_protocol.accept_policy_text import parse_policies
from odf_protocol.enums import DatasetKind
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.policy import AcceptRule, Policy, Proof, decide, decide_on_order
from odf_protocol.vocabulary import Vocabulary

INSTANT: Final = pa.timestamp("ms", "UTC")
SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False), pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", INSTANT, nullable=False), pa.field("event_time", INSTANT),
        ("text", pa.string()), ("number", pa.float64()), ("items", pa.list_(pa.float32())),
    ]
)  # fmt: skip
OTHER_NAN: Final = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
Row = tuple[int, Any, Any, Any]
HONEST: Final[list[Row]] = [
    *(
        (0, f"row {at}" if at % 7 else None, (0.0, -0.0, float("nan"), None, at / 3)[at % 5], [at, None])
        for at in range(3000)
    ),
    *[(0, "twin", 1.5, None)] * 3,
    (2, "old", 1.0, None), (3, "new", 1.0, None),
]  # fmt: skip


def write(path: Path, rows: list[Row]) -> Path:
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    columns = [
        [*range(len(rows))], [op for op, *_ in rows], [moment] * len(rows), [moment] * len(rows),
        [text for _, text, _, _ in rows], [number for _, _, number, _ in rows], [items for *_, items in rows],
    ]  # fmt: skip
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), path, row_group_size=1000)
    return path


def shared(folder: Path, claimed: list[Row]) -> tuple[int, int, int]:
    first, second = write(folder / "claimed.parquet", claimed), write(folder / "made.parquet", HONEST)
    with SliceProcess() as reader:
        return reader.compare_bags(first, second, Vocabulary(), sequence_number=7)


def test_rows_in_another_order_are_the_same_bag(tmp_path: Path) -> None:
    assert shared(tmp_path, HONEST[::-1]) == (len(HONEST),) * 3


def replaced(place: int, row: Row) -> list[Row]:
    return [row if at == place else each for at, each in enumerate(HONEST)]


LIES: Final[dict[str, list[Row]]] = {
    "one of equal rows more, another row less": [*HONEST[1:], (0, "twin", 1.5, None)],
    "one of equal rows less, another row twice": [each for each in HONEST if each[1] != "twin"]
    + [(0, "twin", 1.5, None)] * 2
    + [HONEST[5]],
    "the other zero": replaced(5, (0, HONEST[5][1], -0.0, HONEST[5][3])),
    "another NaN": replaced(2, (0, "row 2", OTHER_NAN, HONEST[2][3])),
    "null for NaN": replaced(2, (0, "row 2", None, HONEST[2][3])),
    "null for zero": replaced(5, (0, HONEST[5][1], None, HONEST[5][3])),
    "null for an empty text": replaced(7, (0, "", HONEST[7][2], HONEST[7][3])),
    "the other zero in a list": replaced(0, (0, None, 0.0, [-0.0, None])),
    "a null list for an empty one": replaced(len(HONEST) - 1, (3, "new", 1.0, [])),
    "operations swapped": [*HONEST[:-2], (3, "old", 1.0, None), (2, "new", 1.0, None)],
    "cells of two rows swapped": [*HONEST[:-2], (2, "new", 1.0, None), (3, "old", 1.0, None)],
}


@pytest.mark.parametrize("lie", LIES)
def test_other_rows_are_no_bag_of_the_honest_ones(tmp_path: Path, lie: str) -> None:
    claimed, made, same = shared(tmp_path, LIES[lie])
    assert claimed == made == len(HONEST)
    assert same < claimed


def test_policy_may_ask_for_the_order(tmp_path: Path) -> None:
    """Clause POLICY-11."""
    text = "kind: AcceptPolicies\nversion: 1\ndefault: {accept: WORD, rowOrder: proved}\n"
    strict = parse_policies(text.replace("WORD", "re-executed"), source_name="p").default
    assert strict.proves_order
    with pytest.raises(ManifestError, match="re-executed or unsigned"):
        parse_policies(text.replace("WORD", "integrity"), source_name="p")
    with pytest.raises(ManifestError, match="any or proved"):
        parse_policies(text.replace("WORD", "re-executed").replace("proved", "yes"), source_name="p")
    proof = Proof(kind=DatasetKind.DERIVATIVE, signed=True)
    lax = AcceptRule.of(Policy.REEXECUTE)
    decision = decide(lax, proof)
    assert decide_on_order(decision, strict, "") == decision
    assert decide_on_order(decision, lax, "not their order").reason.endswith("not their order")
    refused = decide_on_order(decision, strict, "not their order")
    assert not refused.accepted
    assert refused.rule.startswith("POLICY-11")
