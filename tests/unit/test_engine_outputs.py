"""Clauses ENGINE-5 and ENGINE-6: what comes out of a sandbox is taken over and checked as hostile."""

import base64
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.output_checks import RowsCheck
from odf_engines.host.output_rows import check_file
from odf_engines.host.outputs import OperationOutput, OutputFolder
from odf_engines.host.receive import check_system_columns, receive_grade, receive_transform
from odf_protocol.events import OffsetInterval
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.transforms import SYSTEM_TIME, orders_input, transform_request

INSTANT = pa.timestamp("ms", "UTC")
LOOKBACK = {
    "waits_for": {"o": 0},
    "behind_us": 0,
    "meets_new": False,
    "follows_us": None,
    "alike": [],
    "newest_by": None,
    "asked_by": [],
}
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", INSTANT, nullable=False),
        pa.field("event_time", INSTANT, nullable=False),
        pa.field("id", pa.int64()),
    ]
)


@pytest.fixture
def folders(tmp_path):
    source, target = tmp_path / "out", tmp_path / "done"
    source.mkdir()
    target.mkdir()
    return source, target


@pytest.fixture
def outputs(folders):
    return OutputFolder(*folders, Limits(output_bytes=10_000))


def rows(count=3, *, start=10, op=None, times=None, schema=SCHEMA):
    return pa.Table.from_arrays(
        [
            pa.array(np.arange(start, start + count)),
            pa.array(op or [0] * count, pa.int32()),
            pa.array(times or [SYSTEM_TIME.unix_ms] * count, pa.int64()).cast(INSTANT),
            pa.array([5] * count, pa.int64()).cast(INSTANT),
            pa.array(range(count), pa.int64()),
        ],
        schema=schema,
    )


def check(path, *, interval=(10, 12), schema=SCHEMA, limits=None):
    start, end = interval
    limits = limits or Limits()
    wanted = RowsCheck(
        schema=schema,
        vocabulary=Vocabulary(),
        interval=OffsetInterval(start=start, end=end),
        system_time_ms=SYSTEM_TIME.unix_ms,
        max_rows=limits.output_rows,
        max_decoded_bytes=limits.decoded_bytes,
    )
    return check_file(path, wanted)


def test_plain_file_is_copied_out_of_reach(folders, outputs):
    (folders[0] / "data.parquet").write_bytes(b"rows")
    taken = outputs.take("data.parquet")
    (folders[0] / "data.parquet").write_bytes(b"changed afterwards")
    assert taken.parent == folders[1]
    assert taken.read_bytes() == b"rows"


def make_link(folder):
    (folder / "data").symlink_to("/etc/passwd")


def make_second_name(folder):
    (folder / "other").write_bytes(b"x")
    os.link(folder / "other", folder / "data")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make_link, id="symbolic-link"),
        pytest.param(make_second_name, id="second-name-of-a-file"),
        pytest.param(lambda folder: (folder / "data").mkdir(), id="folder"),
        pytest.param(lambda folder: os.mkfifo(folder / "data"), id="pipe"),
        pytest.param(lambda folder: None, id="nothing"),
    ],
)
def test_anything_but_a_plain_file_is_rejected(folders, outputs, make):
    make(folders[0])
    with pytest.raises(EngineFailureError):
        outputs.take("data")
    assert not list(folders[1].iterdir())


def test_folder_that_became_a_link_is_rejected(folders, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").write_bytes(b"x")
    folders[0].rmdir()
    folders[0].symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EngineFailureError):
        OutputFolder(*folders, Limits()).take("data")


@pytest.mark.parametrize("name", ["../data", "/etc/passwd", "a/b", "", ".", "..", ".hidden", "a\0b", "x" * 80, "a\nb"])
def test_name_that_leaves_the_folder_is_rejected(outputs, name):
    with pytest.raises(EngineFailureError):
        outputs.take(name)


def test_file_that_is_too_large_is_rejected(folders, outputs):
    (folders[0] / "data").write_bytes(bytes(10_001))
    with pytest.raises(LimitExceededError) as caught:
        outputs.take("data")
    assert (caught.value.limit, caught.value.found) == ("output_bytes", 10_001)


def test_file_that_shrinks_while_it_is_taken_over_is_rejected(folders, outputs, monkeypatch):
    (folders[0] / "data").write_bytes(bytes(9_000))
    found = os.fstat

    def shrink_after_it_was_measured(descriptor):
        measured = found(descriptor)
        os.truncate(folders[0] / "data", 100)
        return measured

    monkeypatch.setattr(os, "fstat", shrink_after_it_was_measured)
    with pytest.raises(EngineFailureError, match="shrank"):
        outputs.take("data")


def test_modes_of_the_engine_are_not_taken_over(folders, outputs):
    (folders[0] / "data").write_bytes(b"x")
    (folders[0] / "data").chmod(0o6777)
    assert outputs.take("data").stat().st_mode & 0o6111 == 0


def test_slice_as_it_should_be_passes(tmp_path):
    pq.write_table(rows(), tmp_path / "data")
    check(tmp_path / "data")


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        pytest.param(rows(start=11), "offsets", id="offsets-start-elsewhere"),
        pytest.param(rows(4), "rows", id="more-rows"),
        pytest.param(rows(2), "rows", id="fewer-rows"),
        pytest.param(rows().take([0, 2, 1]), "offsets", id="offsets-out-of-order"),
        pytest.param(rows(op=[0, 4, 0]), "operations", id="unknown-operation"),
        pytest.param(rows(op=[0, -1, 0]), "operations", id="negative-operation"),
        pytest.param(rows(times=[SYSTEM_TIME.unix_ms] * 2 + [0]), "system time", id="another-system-time"),
        pytest.param(rows().drop(["id"]), "columns", id="missing-column"),
        pytest.param(rows().append_column("more", pa.array([1, 2, 3])), "columns", id="further-column"),
        pytest.param(rows().cast(SCHEMA.set(4, pa.field("id", pa.int32()))), "columns", id="another-type"),
    ],
)
def test_slice_that_breaks_a_rule_is_rejected(tmp_path, table, complaint):
    pq.write_table(table, tmp_path / "data")
    with pytest.raises(EngineFailureError, match=complaint):
        check(tmp_path / "data")


def test_null_in_a_system_column_is_rejected(tmp_path):
    nullable = SCHEMA.set(1, pa.field("op", pa.int32()))
    table = rows(schema=nullable).set_column(1, nullable.field(1), pa.array([0, None, 0], pa.int32()))
    pq.write_table(table, tmp_path / "data")
    with pytest.raises(EngineFailureError, match="operations"):
        check(tmp_path / "data", schema=nullable)


def test_text_that_is_no_utf_8_is_rejected_rows_8(tmp_path):
    schema = SCHEMA.append(pa.field("text", pa.string()))
    raw = pa.array([b"a", b"\xff", b"b"], pa.binary())
    text = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2])
    pq.write_table(rows().append_column("text", text), tmp_path / "data")
    with pytest.raises(EngineFailureError, match="UTF8"):
        check(tmp_path / "data", schema=schema)


@pytest.mark.parametrize("cut", [0, 4, 100, -1])
def test_bytes_that_are_no_parquet_are_rejected(tmp_path, cut):
    pq.write_table(rows(), tmp_path / "data")
    raw = (tmp_path / "data").read_bytes()
    (tmp_path / "data").write_bytes(raw[:cut])
    with pytest.raises(EngineFailureError):
        check(tmp_path / "data")


@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli", "lz4"])
def test_compression_that_swells_without_bound_is_rejected(tmp_path, codec):
    pq.write_table(rows(), tmp_path / "data", compression=codec)
    with pytest.raises(EngineFailureError, match="compressed"):
        check(tmp_path / "data")


def test_footer_that_costs_gigabytes_is_rejected_before_it_is_parsed(tmp_path):
    pq.write_table(rows(), tmp_path / "data")
    raw = (tmp_path / "data").read_bytes()
    (tmp_path / "data").write_bytes(raw[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(EngineFailureError, match="footer"):
        check(tmp_path / "data")


def test_flood_of_row_groups_is_rejected(tmp_path):
    with pq.ParquetWriter(tmp_path / "data", SCHEMA) as writer:
        for _ in range(5):
            writer.write_table(rows(0))
        writer.write_table(rows())
    with pytest.raises(EngineFailureError, match="row groups"):
        check(tmp_path / "data")


def test_too_many_rows_are_rejected(tmp_path):
    pq.write_table(rows(), tmp_path / "data")
    with pytest.raises(LimitExceededError) as caught:
        check(tmp_path / "data", limits=Limits(output_rows=2))
    assert caught.value.limit == "output_rows"


def answer(**changes):
    usual = {
        "schema": schema_text(SCHEMA), "data": "data.parquet", "rows_out": 3, "late_rows": 0,
        "watermark_ms": 7_000, "checkpoint": None,
        "inputs": [{"rows": 0, "first": None, "last": None}],
    }  # fmt: skip
    return OperationOutput({**usual, **changes}, 0.1)


def receive(folders, answered, **more):
    pq.write_table(rows(start=0), folders[0] / "data.parquet")
    request = transform_request("SELECT 1", orders_input(watermarks_ms=[7_000]), **more)
    return receive_transform(request, answered, OutputFolder(*folders, Limits()))


def test_honest_answer_becomes_a_response(folders):
    response = receive(folders, answer())
    assert response.offset_interval == OffsetInterval(start=0, end=2)
    assert response.watermark == Timestamp(7)
    assert response.schema == SCHEMA


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"rows_out": 2}, id="rows-do-not-match"),
        pytest.param({"rows_out": 0}, id="file-without-rows"),
        pytest.param({"data": None}, id="rows-without-a-file"),
        pytest.param({"rows_out": -1}, id="negative-rows"),
        pytest.param({"rows_out": True}, id="rows-are-a-truth-value"),
        pytest.param({"rows_out": 2**70}, id="rows-are-huge"),
        pytest.param({"rows_out": "3"}, id="rows-are-text"),
        pytest.param({"inputs": []}, id="no-word-about-an-input"),
        pytest.param({"inputs": [3]}, id="rows-of-an-input-are-a-number"),
        pytest.param({"inputs": [{"rows": 1, "first": 0, "last": 0}]}, id="rows-that-were-not-asked-for"),
        pytest.param({"data": 3}, id="name-is-a-number"),
        pytest.param({"data": "../data.parquet"}, id="name-leaves-the-folder"),
        pytest.param({"watermark_ms": 10**18}, id="watermark-beyond-time"),
        pytest.param({"watermark_ms": 1.5}, id="watermark-is-a-fraction"),
        pytest.param({"checkpoint": "nothing"}, id="checkpoint-that-is-not-there"),
        pytest.param({"schema": "!"}, id="schema-is-no-text-of-one"),
        pytest.param({"schema": base64.b64encode(b"x" * 40).decode()}, id="schema-is-garbage"),
        pytest.param({"schema": schema_text(SCHEMA.remove(1))}, id="schema-lacks-a-system-column"),
        pytest.param({"schema": schema_text(SCHEMA.append(pa.field("id", pa.int64())))}, id="schema-names-twice"),
    ],
)
def test_dishonest_answer_is_rejected(folders, changes):
    with pytest.raises(EngineFailureError):
        receive(folders, answer(**changes))


def test_watermark_that_goes_back_is_rejected(folders):
    with pytest.raises(EngineFailureError, match="went back"):
        receive(folders, answer(), prev_watermark_ms=8_000)


@pytest.mark.parametrize("values", [None, [], "x", 3])
def test_answer_that_is_no_dictionary_is_rejected(values):
    with pytest.raises(EngineFailureError):
        OperationOutput(values, 0.1)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"level": "splendid", "findings": []},
        {"level": "pinned", "findings": [1]},
        {"level": "pinned", "findings": [], "stages": "reads"},
        {"level": "pinned", "findings": [], "stages": [1]},
        {"level": "pinned", "findings": [], "key": [None]},
        {"level": "pinned", "findings": [], "lookbacks": [1]},
        {"level": "pinned", "findings": [], "lookbacks": {"o": None}},
        {"level": "pinned", "findings": [], "lookbacks": {"o": LOOKBACK | {"behind_us": -1}}},
        {"level": "pinned", "findings": [], "lookbacks": {"o": LOOKBACK | {"waits_for": {"o": "1"}}}},
        {"level": "pinned", "findings": [], "lookbacks": {"o": LOOKBACK | {"follows_us": -1}}},
        {"level": "pinned", "findings": [], "lookbacks": {"o": LOOKBACK | {"alike": [1]}}},
        {"level": "pinned", "findings": [], "lookbacks": {"o": LOOKBACK | {"newest_by": "k"}}},
    ],
)
def test_grade_that_makes_no_sense_is_rejected(outputs, values):
    with pytest.raises(EngineFailureError):
        receive_grade(None, OperationOutput(values, 0.1), outputs)


@pytest.mark.parametrize(
    "field",
    [
        pytest.param(pa.field("op", pa.int64(), nullable=False), id="wide-operation"),
        pytest.param(pa.field("op", pa.int32()), id="operation-may-be-null"),
    ],
)
def test_system_column_of_another_type_is_rejected(field):
    with pytest.raises(EngineFailureError):
        check_system_columns(SCHEMA.set(1, field), Vocabulary())


READ = {"rows": 3, "first": 5, "last": 7}


def receive_read(folders, read, earlier=(), **options):
    pq.write_table(rows(start=0), folders[0] / "data.parquet")
    given = orders_input([folders[0] / "data.parquet"], (5, 7), [7_000])
    if earlier:
        given = replace(given, prev_offset=4, earlier_slices=given.slices * len(earlier), earlier_intervals=earlier)
    request = transform_request("SELECT 1", given)
    return receive_transform(request, answer(inputs=[read]), OutputFolder(*folders, Limits()), **options)


def test_input_that_was_read_whole_is_counted_by_what_the_engine_says(folders):
    statistics = receive_read(folders, READ).statistics
    assert (statistics.rows_in, statistics.rows_by_input) == (3, (3,))


def test_rows_of_an_output_are_counted_by_operation(folders):
    path = folders[0] / "data.parquet"
    table = rows(start=10)
    operations = pa.array([2, 3, 0], pa.int32())
    pq.write_table(table.set_column(1, SCHEMA.field(1), operations), path)
    assert check(path).operations == (1, 0, 1, 1)


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param({"rows": 2}, id="too-few"),
        pytest.param({"rows": 4}, id="too-many"),
        pytest.param({"first": 6}, id="the-beginning-is-missing"),
        pytest.param({"last": 6}, id="the-end-is-missing"),
        pytest.param({"rows": 0, "first": None, "last": None}, id="none"),
        pytest.param({"rows": True}, id="a-truth-value"),
        pytest.param(None, id="nothing-said"),
        pytest.param({"last": "7"}, id="text"),
    ],
)
def test_engine_that_read_other_rows_than_it_was_asked_to_fails_the_step_engine_27(folders, lie):
    with pytest.raises(EngineFailureError, match="asked for 3 rows, offsets 5 to 7"):
        receive_read(folders, None if lie is None else READ | lie)


@pytest.mark.parametrize("lie", [{}, {"rows": 3, "first": 5}, {"rows": 7}, {"rows": 8, "first": 0}])
def test_of_rows_before_a_step_those_that_were_handed_over_are_to_be_read_engine_27(folders, lie):
    earlier = OffsetInterval(start=1, end=1), OffsetInterval(start=3, end=6)  # the step's bound cuts the last one
    read = {"rows": 6, "first": 1, "last": 7}
    if not lie:
        assert receive_read(folders, read, earlier).statistics.rows_by_input == (6,)
        return
    with pytest.raises(EngineFailureError, match="asked for 6 rows, offsets 1 to 7"):
        receive_read(folders, read | lie, earlier)


def test_of_an_engine_whose_contract_has_no_word_for_what_it_read_nobody_knows_it(folders):
    assert receive_read(folders, None, counts_rows=False).statistics.rows_by_input == (None,)


def test_engine_of_such_a_contract_that_says_it_all_the_same_is_held_to_it(folders):
    with pytest.raises(EngineFailureError, match="asked for 3 rows, offsets 5 to 7"):
        receive_read(folders, READ | {"rows": 2}, counts_rows=False)
