"""Chains that take back what they never gave, signed by their own key and right in every hash.

Each single unsound operation is rejected, by pull and by ``verify``, whatever comes before and behind it; every sound
changelog passes. Source: ROWS-12 to ROWS-14 in ``spec/extensions/acceptance.md``.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.rows import changelog_check
from odf_node.trust.verifying import VerificationFinding
from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DataTypeFloat64,
    DataTypeInt64,
    DataTypeOption,
    DataTypeStruct,
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    ReadStepNdJson,
    SetDataSchema,
)
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, root_chain

RULE = "ROWS-12"
A, B, C = ("Oslo", 1), ("Rome", 2), (None, None)
APPEND, RETRACT, FROM, TO = range(4)

Change = tuple[int, tuple[Any, Any]]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge.create(tmp_path / "home")


def changelog(folder: Path, *blocks: list[Change], **fields: Any) -> PeerChain:
    """A root whose slices have these rows, all of one event time."""
    chain = root_chain(folder, slices=0, **fields)
    for block in blocks:
        add(chain, block)
    return chain


def add(chain: PeerChain, block: list[Change]) -> None:
    chain.add_rows([row for _, row in block], op=[op for op, _ in block], event_time=[NOON.unix_ms] * len(block))


def verify(judge: Judge, name: str = "cities", **options: Any) -> VerificationFinding:
    node = Node(HomeFolder(judge.home.path), FixedClock(NOON))
    try:
        (record,) = node.verifier.select([name], recursive=False)
        return node.verifier.verify(record, on_progress=Silence().on_progress, **options)
    finally:
        node.close()


SOUND: dict[str, list[list[Change]]] = {
    "retraction": [[(APPEND, A), (APPEND, B)], [(RETRACT, A)]],
    "correction": [[(APPEND, A)], [(FROM, A), (TO, B)], [(FROM, B), (TO, A)]],
    "given again": [[(APPEND, A)], [(RETRACT, A)], [(APPEND, A)], [(RETRACT, A)]],
    "equal rows": [[(APPEND, A)] * 3, [(RETRACT, A)] * 2, [(FROM, A), (TO, C)]],
    "nulls": [[(APPEND, C)], [(RETRACT, C)]],
    "given behind, in one block": [[(APPEND, B)], [(FROM, A), (TO, B), (APPEND, A)]],
    "corrected to itself": [[(APPEND, A)], [(FROM, A), (TO, A)], [(RETRACT, A)]],
}
UNSOUND: dict[str, tuple[list[list[Change]], int, int]] = {
    "never given": ([[(APPEND, A)], [(APPEND, A), (RETRACT, B)]], 3, 2),
    "in the first block": ([[(APPEND, A), (FROM, B), (TO, A)]], 2, 1),
    "taken twice": ([[(APPEND, A)], [(RETRACT, A)], [(FROM, A), (TO, B)]], 4, 2),
    "taken twice at once": ([[(APPEND, A), (APPEND, B)], [(RETRACT, A), (RETRACT, A)]], 3, 3),
    "one of many equal rows too often": ([[(APPEND, A)] * 3, [(RETRACT, A)] * 4], 3, 6),
    "key alone": ([[(APPEND, A)], [(RETRACT, ("Oslo", None))]], 3, 1),
    "null for a value": ([[(APPEND, A)], [(RETRACT, (None, 1))]], 3, 1),
    "given a block later": ([[(APPEND, B)], [(RETRACT, A)], [(APPEND, A)]], 3, 1),
}


@pytest.mark.parametrize("blocks", SOUND.values(), ids=SOUND)
def test_sound_changelog_is_taken_whole_and_block_by_block(
    judge: Judge, tmp_path: Path, blocks: list[list[Change]]
) -> None:
    chain = changelog(tmp_path, *blocks)

    for number in range(1, len(chain.blocks)):
        base = None if number == 1 else chain.up_to(number - 1).head
        assert judge.accept(chain.up_to(number), base=base).warnings == ()
    assert verify(judge).describe() == [
        f"cities: valid: {len(chain.blocks)} blocks, {sum(map(len, blocks))} rows, all signed by the dataset's key"
    ]
    again = Judge.create(tmp_path / "again")
    assert again.accept(chain).warnings == ()


@pytest.mark.parametrize(("blocks", "number", "offset"), UNSOUND.values(), ids=UNSOUND)
def test_unsound_changelog_is_rejected_with_block_and_row(
    judge: Judge, tmp_path: Path, blocks: list[list[Change]], number: int, offset: int
) -> None:
    chain = changelog(tmp_path, *blocks)

    report = judge.reject(chain.proposal(), chain.files, rule=RULE)

    assert report["block"] == number
    assert f"offset {offset}, which takes back (event_time '2024-" in report["found"]
    # So it is by whoever has the blocks before it.
    judge.accept(chain.up_to(number - 1))
    report = judge.reject(chain.proposal(chain.up_to(number - 1).head), chain.files, rule=RULE)
    assert report["block"] == number


def test_rejection_names_the_values_that_were_never_given(judge: Judge, tmp_path: Path) -> None:
    chain = changelog(tmp_path, [(APPEND, A)], [(RETRACT, ("Oslo\x1b[2J", 7)), (RETRACT, B), (RETRACT, C)])

    report = judge.reject(chain.proposal(), chain.files, rule=RULE)

    assert report["found"].endswith("city 'Oslo\\x1b[2J', people '7'), and 2 more")
    assert "block 3 breaks ROWS-12 nothing-is-taken-back-that-is-not-current" in report["reason"]


def test_retraction_of_another_event_time_is_rejected(judge: Judge, tmp_path: Path) -> None:
    chain = changelog(tmp_path, [(APPEND, A)])
    chain.add_rows([A], op=[RETRACT], event_time=[NOON.unix_ms + 1])

    judge.reject(chain.proposal(), chain.files, rule=RULE)


def test_verify_finds_a_chain_that_was_taken_before_the_rule_was_there(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = changelog(tmp_path, [(APPEND, A)], [(RETRACT, B)], [(APPEND, B)])
    with monkeypatch.context() as patch:
        patch.setattr(changelog_check.ChangelogCheck, "find_unsound", lambda *_: [])
        judge.accept(chain)

    finding = verify(judge)

    assert (finding.rule.split()[0], finding.problem_block, finding.is_damage) == (RULE, 3, False)
    assert "city 'Rome', people '2'" in finding.describe()[0]


def test_each_single_unsound_operation_of_random_changelogs_is_found(tmp_path: Path) -> None:
    """Sound histories pass; with one row that takes, changed into another one, each is rejected at its block."""
    found = 0
    for seed in range(12):
        random = Random(seed)
        blocks = random_history(random)
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert Judge.create(folder / "sound").accept(changelog(folder, *blocks)).warnings == ()
        taking = [(n, m) for n, block in enumerate(blocks) for m, (op, _) in enumerate(block) if op in {RETRACT, FROM}]
        if not taking:
            continue
        number, place = random.choice(taking)
        op, (city, people) = blocks[number][place]
        forged = [[*block] for block in blocks]
        forged[number][place] = (op, random.choice([(city, 99), ("Lima", people), (None, None)]))
        report = Judge.create(folder / "forged").reject(
            (chain := changelog(folder, *forged)).proposal(), chain.files, rule=RULE
        )
        assert report["block"] == 2 + number
        found += 1
    assert found > 8


def random_history(random: Random) -> list[list[Change]]:
    there: Counter[tuple[Any, Any]] = Counter()
    rows = [(random.choice(["Oslo", "Rome", ""]), random.randrange(3)) for _ in range(5)]
    blocks: list[list[Change]] = []
    for _ in range(random.randrange(2, 6)):
        block: list[Change] = []
        for _ in range(random.randrange(1, 9)):
            current = [row for row, count in there.items() if count > 0]
            old, new = random.choice(current or rows), random.choice(rows)
            change = random.choice(["append", "retract", "correct"]) if current else "append"
            if change == "append":
                block.append((APPEND, new))
                there[new] += 1
            elif change == "retract":
                block.append((RETRACT, old))
                there[old] -= 1
            else:
                block += [(FROM, old), (TO, new)]
                there[old] -= 1
                there[new] += 1
        random.shuffle(block)
        blocks.append(block)
    return blocks


@pytest.mark.parametrize("parts", [1, 3])
def test_sizes_across_batches_and_parts_make_no_difference(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Several batches of a read, and more rows taken than are looked for at once."""
    size = 70_000
    monkeypatch.setattr(changelog_check, "_MAX_ROWS", -(-size // parts))
    given: list[Change] = [(APPEND, (f"city {n % 50_000}", n % 50_000)) for n in range(size)]
    taken: list[Change] = [(RETRACT, row) for _, row in Random(1).sample(given, size)]
    judge.accept(changelog(tmp_path, given, taken))
    place = 66_000
    taken[place] = (RETRACT, ("city 1", -1))
    chain = changelog(tmp_path, given, taken)

    report = Judge.create(tmp_path / "other").reject(chain.proposal(), chain.files, rule=RULE)

    assert f"offset {size + place}, " in report["found"]
    assert report["found"].endswith("people '-1')")


def with_floats(folder: Path, values: list[list[tuple[int, float | None]]]) -> PeerChain:
    schema = DataSchema(
        fields=(*CITY_SCHEMA.fields[:4], DataField(name="v", type=DataTypeOption(inner=DataTypeFloat64())))
    )
    chain = root_chain(folder, slices=0)
    chain.blocks.pop()
    chain.signatures.pop()
    chain.step_records.pop()
    chain.add(SetDataSchema(schema=schema))
    for block in values:
        first, at = chain.next_offset(), Timestamp(NOON.seconds + len(chain.blocks))
        table = pa.table(
            [
                pa.array(range(first, first + len(block)), pa.int64()),
                pa.array([op for op, _ in block], pa.int32()),
                pa.array([at.unix_ms] * len(block), pa.timestamp("ms", "UTC")),
                pa.array([NOON.unix_ms] * len(block), pa.timestamp("ms", "UTC")),
                pa.array(
                    np.array([np.nan if v is None else v for _, v in block]),
                    mask=np.array([v is None for _, v in block]),
                ),
            ],
            schema=arrow_schema_of(schema),
        )
        chain.add_slice(parquet_bytes(table), rows=len(block))
    return chain


def test_floats_are_equal_as_sql_groups_them(judge: Judge, tmp_path: Path) -> None:
    other_nan = float(np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64)[0])
    judge.accept(with_floats(tmp_path, [[(0, 0.0), (0, float("nan"))], [(1, -0.0), (2, other_nan)]]))

    for one, other in [(0.1, 0.1 + 2**-56), (float("nan"), None), (0.0, None), (0.0, 5e-324)]:
        chain = with_floats(tmp_path, [[(0, one)], [(1, other)]])
        if one == other:
            continue
        Judge.create(tmp_path / repr((one, other))).reject(chain.proposal(), chain.files, rule=RULE)


def test_row_that_was_given_before_a_column_came_can_be_taken_back(judge: Judge, tmp_path: Path) -> None:
    chain = changelog(tmp_path, [(APPEND, A), (APPEND, B)])
    added = (
        DataField(name="height", type=DataTypeOption(inner=DataTypeInt64())),
        DataField(
            name="more",
            type=DataTypeOption(
                inner=DataTypeStruct(fields=(DataField(name="x", type=DataTypeOption(inner=DataTypeInt64())),))
            ),
        ),
    )
    schema = DataSchema(fields=(*CITY_SCHEMA.fields, *added))
    chain.add(SetDataSchema(schema=schema))

    def take(row: tuple[Any, Any], height: int | None) -> PeerChain:
        longer = chain.copy()
        at = Timestamp(NOON.seconds + len(longer.blocks))
        table = pa.table(
            [[2], pa.array([RETRACT], pa.int32()), pa.array([at.unix_ms], pa.timestamp("ms", "UTC")),
             pa.array([NOON.unix_ms], pa.timestamp("ms", "UTC")), [row[0]], [row[1]], pa.array([height], pa.int64()),
             pa.array([None], arrow_schema_of(schema).field("more").type)],
            schema=arrow_schema_of(schema),
        )  # fmt: skip
        return longer.add_slice(parquet_bytes(table), rows=1)

    refused = take(A, 1)
    judge.reject(refused.proposal(), refused.files, rule=RULE)
    judge.accept(take(A, None))
    assert verify(judge).is_valid


def stream(merge: Any) -> AddPushSource:
    return AddPushSource(source_name="default", read=ReadStepNdJson(), merge=merge)


def test_stream_of_changes_may_and_its_weakness_is_said(judge: Judge, tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=0)
    chain.add(stream(MergeStrategyChangelogStream(primary_key=("city",))))
    for block in ([(APPEND, A)], [(FROM, B), (TO, A), (RETRACT, C)]):
        add(chain, block)
    stated = "takes back 2 rows too many, from block 4 on, 2 of them never given"

    report = judge.accept(chain)

    assert report.warnings == (stated,)
    assert report.decision.reason.endswith(f"; {stated}")
    finding = verify(judge)
    assert finding.is_valid
    assert f"cities: note: {stated}" in finding.describe()


def test_source_whose_operations_the_node_makes_is_no_excuse(judge: Judge, tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=0)
    chain.add(stream(MergeStrategySnapshot(primary_key=("city",))))
    for block in ([(APPEND, A)], [(FROM, B), (TO, A)]):
        add(chain, block)

    judge.reject(chain.proposal(), chain.files, rule=RULE)


def test_key_that_stands_twice_in_a_snapshot_takes_a_row_twice_and_is_said(judge: Judge, tmp_path: Path) -> None:
    """As existing engines write it; a row that nothing gave is something else."""
    chain = root_chain(tmp_path, slices=0)
    chain.add(stream(MergeStrategySnapshot(primary_key=("city",))))
    for block in ([(APPEND, A)], [(FROM, A), (FROM, A), (TO, ("Oslo", 3)), (TO, ("Oslo", 4))]):
        add(chain, block)

    assert judge.accept(chain).warnings == ("takes back 1 row too many, from block 4 on",)

    add(chain, [(RETRACT, ("Oslo", 3)), (RETRACT, ("Oslo", 5))])
    report = judge.reject(chain.proposal(chain.up_to(4).head), chain.files, rule=RULE)
    assert report["found"].endswith("city 'Oslo', people '5')")


def test_damaged_notes_of_rows_are_made_again(judge: Judge, tmp_path: Path) -> None:
    chain = changelog(tmp_path, [(APPEND, A), (APPEND, B)], [(RETRACT, A)], [(RETRACT, B)])
    judge.accept(chain.up_to(3))
    notes = [path for path in judge.home.rows.glob("*/*") if ".changes-" in path.name]
    assert len(notes) == 2
    for path in notes:
        path.write_bytes(bytes(len(path.read_bytes())))

    judge.accept(chain, base=chain.up_to(3).head)

    assert verify(judge).is_valid


def test_append_only_chain_keeps_no_notes_of_rows(judge: Judge, tmp_path: Path) -> None:
    judge.accept(root_chain(tmp_path))

    assert verify(judge).is_valid
    assert not judge.home.rows.exists() or not any(judge.home.rows.glob("*/*"))
