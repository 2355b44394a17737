"""Values looked up in another dataset by a key: what is in force there, of equal keys the newest (CONV-8)."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_engines.conversion.contract import ColumnsUnknownError, ConverterContext, ParameterError
from odf_engines.conversion.converted_rows import make_converter
from odf_engines.ingest_parts import ConverterCall
from odf_engines.records.current_rows import plain_schema_of
from odf_engines.records.referenced_rows import ReferencedRows
from odf_protocol.block_notes import LOOKUPS, LookedUp, list_lookups, note_lookups
from odf_protocol.events import AddData
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary
from odf_quality.keys import read_keyed
from odf_quality.lookup import Lookup
from plug_ins.quality.unit.test_converters import bad, call, good, run
from support.store_values import dataset_id, object_hash

NOW = datetime(2024, 1, 1, tzinfo=UTC)
THEIRS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("event_time", pa.timestamp("ms", "UTC")),
        pa.field("code", pa.string()),
        pa.field("number", pa.int32()),
        pa.field("people", pa.int64()),
        pa.field("share", pa.float64()),
        pa.field("rate", pa.decimal128(6, 2)),
        pa.field("tags", pa.list_(pa.field("item", pa.string()))),
    ]
)
APPEND, RETRACT, FROM, TO = 0, 1, 2, 3


def dataset(folder: Path, *slices: list[tuple]) -> ReferencedRows:
    """Rows as operation, code, number and people, in files of slices."""
    folder.mkdir(exist_ok=True, parents=True)
    paths, offset = [], 0
    for number, rows in enumerate(slices):
        found = []
        for op, code, key, people in rows:
            found.append({"offset": offset, "op": op, "system_time": NOW, "event_time": NOW, "code": code,
                          "number": key, "people": people, "rate": Decimal("1.25")})  # fmt: skip
            offset += 1
        paths.append(folder / f"theirs-{number}.parquet")
        # A column that the dataset has only since then is not in the first file.
        schema = THEIRS if number else THEIRS.remove(THEIRS.get_field_index("share"))
        pq.write_table(pa.Table.from_pylist(found, schema), paths[-1])
    return ReferencedRows(vocabulary=Vocabulary(), schema=data_schema_of(THEIRS), slices=tuple(paths))


def lookup(rows: ReferencedRows | None, **parameters: object) -> ConverterCall:
    given = {"dataset": "countries", "on": {"code": "code"}, "take": {"people": "people"}, **parameters}
    return replace(call("Lookup", **given), rows=rows)


SLICES = (
    [(APPEND, "CH", 1, 8), (APPEND, "FR", 2, 60), (APPEND, "IT", 3, 58), (APPEND, None, 4, 7)],
    [(FROM, "FR", 2, 60), (TO, "FR", 2, 67), (RETRACT, "IT", 3, 58), (APPEND, "DE", 5, None), (APPEND, "CH", 1, 9)],
)
OURS = pa.table({"code": ["FR", "IT", None, "CH", "DE", "XX"], "people": pa.array([0, 1, 2, 3, 4, 5], pa.int64())})


def test_newest_row_is_one_in_force_though_a_newer_one_with_the_same_value_was_taken(tmp_path: Path) -> None:
    """Rows are told apart by columns that the lookup does not name, too."""
    theirs = [(APPEND, "CH", 1, 8), (APPEND, "CH", 1, 9), (APPEND, "CH", 2, 8), (RETRACT, "CH", 2, 8)]
    found = run(tmp_path, pa.table({"code": ["CH"]}), lookup(dataset(tmp_path / "theirs", theirs)))
    assert good(found) == [{"code": "CH", "people": 9}]


@pytest.mark.parametrize("group_rows", [1, 2, 1000])
@pytest.mark.parametrize(
    ("missing", "people", "wrong"),
    [
        ("Null", [67, None, None, 9, None, None], []),
        ("Keep", [67, 1, 2, 9, None, 5], []),
        ("Refuse", [67, None, 9, None], [(2, "IT"), (6, "XX")]),
    ],
)
def test_values_are_those_in_force_and_missing_keys_are_treated_as_declared(
    tmp_path: Path, missing: str, people: list, wrong: list, group_rows: int
) -> None:
    rows = dataset(tmp_path, *SLICES)
    found = run(tmp_path, OURS, lookup(rows, missing=missing), group_rows=group_rows)
    assert [row["people"] for row in good(found)] == people
    assert bad(found) == {number: [("Lookup", "missing", "code", code)] for number, code in wrong}


def test_keys_of_several_columns_are_compared_together_and_columns_come_last(tmp_path: Path) -> None:
    rows = dataset(tmp_path, [(APPEND, "a", 1, 11), (APPEND, "a", 2, 12), (APPEND, "b", 1, 21)], [])
    ours = pa.table({"n": pa.array([1, 2, 2, 1, None, 7], pa.int64()), "c": ["a", "a", "b", "b", "a", "a"]})
    take = {"people": "found", "event_time": "since", "rate": "rate"}
    found = run(tmp_path, ours, lookup(rows, on={"c": "code", "n": "number"}, take=take))
    assert found.schema.names == ["n", "c", "found", "since", "rate"]
    assert [row["found"] for row in good(found)] == [11, 12, None, 21, None, None]
    assert good(found)[0] == {"n": 1, "c": "a", "found": 11, "since": NOW, "rate": Decimal("1.25")}
    refused = run(tmp_path, ours, lookup(rows, on={"c": "code", "n": "number"}, missing="Refuse"))
    assert bad(refused) == {number: [("Lookup", "missing", None, None)] for number in (3, 6)}


@pytest.mark.parametrize("name", ["\0newest", "\0weight", "\0weight_sum", "newest", "weight", "newest_max", "0", "1"])
def test_column_of_any_name_is_no_obstacle(tmp_path: Path, name: str) -> None:
    """CONV-8: whose dataset it is, chose its names."""
    schema = THEIRS.append(pa.field(name, pa.int64()))
    rows = [(APPEND, "a", 1, 5), (APPEND, "b", 2, 6), (RETRACT, "a", 1, 5)]
    found = [
        {"offset": offset, "op": op, "system_time": NOW, "event_time": NOW, "code": code, "people": people, name: key}
        for offset, (op, code, key, people) in enumerate(rows)
    ]
    pq.write_table(pa.Table.from_pylist(found, schema), tmp_path / "theirs.parquet")
    theirs = ReferencedRows(
        vocabulary=Vocabulary(), schema=data_schema_of(schema), slices=(tmp_path / "theirs.parquet",)
    )

    keyed = read_keyed(theirs, plain_schema_of(theirs), ["code"], ["people", name])

    assert keyed.values.to_pylist() == [{"code": "b", "people": 6, name: 2}]


def test_dataset_of_which_nothing_is_in_force_has_no_key(tmp_path: Path) -> None:
    for slices in ((), ([(APPEND, "FR", 2, 60), (RETRACT, "FR", 2, 60)],)):
        found = run(tmp_path, OURS, lookup(dataset(tmp_path, *slices)))
        assert [row["people"] for row in good(found)] == [None] * 6


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"on": {}}, "on: expected different columns, one at least"),
    ({"on": {"kode": "code"}}, "on: expected columns of the rows"),
    ({"on": {"code": "kode"}}, r"on: expected plain columns of countries \(event_time, code, .*, found kode"),
    ({"on": {"code": "people"}}, r"on: expected code to be int64, as people is \(Cast\), found string"),
    ({"on": {"share": "share"}}, "on: expected columns with exact values, found share: double"),
    ({"take": {}}, "take: expected different names"),
    ({"take": {"people": "x", "rate": "x"}}, "take: expected different names"),
    ({"take": {"tags": "tags"}}, "take: expected plain columns of countries"),
    ({"take": {"offset": "place"}}, "take: expected plain columns of countries"),
    ({"take": {"rate": "people"}, "missing": "Keep"}, "take: expected people to be decimal128"),
    ({"take": {"people": "new"}, "missing": "Keep"}, "take: expected columns that rows have"),
    ({"missing": "Drop"}, "missing: expected Null or Refuse or Keep, found Drop"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG)
def test_declaration_that_cannot_be_followed_is_rejected(tmp_path: Path, parameters: dict, message: str) -> None:
    ours = pa.schema([("code", pa.string()), ("people", pa.int64()), ("share", pa.float64())])
    with pytest.raises(ParameterError, match=message):
        make_converter(lookup(dataset(tmp_path), **parameters), ours)


def test_columns_are_unknown_where_the_dataset_is_and_the_rest_is_checked() -> None:
    with pytest.raises(ColumnsUnknownError, match="countries"):
        make_converter(lookup(None), OURS.schema)
    with pytest.raises(ParameterError, match="missing"):
        make_converter(lookup(None, missing="Drop"), OURS.schema)


CHANGES = st.lists(
    st.tuples(st.sampled_from([APPEND, RETRACT]), st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 2)),
    max_size=20,
)


@given(changes=CHANGES, cut=st.integers(0, 20))
def test_what_is_found_is_what_a_plain_count_finds(
    tmp_path_factory: pytest.TempPathFactory, changes: list, cut: int
) -> None:
    standing: list[tuple] = []
    sound = []
    for op, *row in changes:
        if op == APPEND:
            standing.append(tuple(row))
        elif tuple(row) in standing:
            standing.remove(tuple(row))  # the oldest
        else:
            continue
        sound.append((op, *row))
    folder = tmp_path_factory.mktemp("rows")
    rows = dataset(folder, sound[:cut], sound[cut:])
    pairs = [(code, number) for code in "ab" for number in (0, 1)]
    ours = pa.table({"code": [code for code, _ in pairs], "number": pa.array([n for _, n in pairs], pa.int32())})
    found = run(folder, ours, lookup(rows, on={"code": "code", "number": "number"}))
    newest = {(code, number): people for code, number, people in standing}
    assert [row["people"] for row in good(found)] == [newest.get(pair) for pair in pairs]


def test_note_says_which_heads_were_read_and_others_notes_are_none() -> None:
    seen = LookedUp(dataset_id(), object_hash(1))
    extra = note_lookups([seen, seen])
    assert list_lookups(AddData(extra=extra)) == (seen,)
    assert note_lookups([]) is None
    for note in (
        "x",
        [1],
        [{"dataset": "did:odf:x", "head": str(seen.head)}],
        [{"dataset": str(dataset_id())}],
        [{}] * 101,
    ):
        assert list_lookups(AddData(extra=ExtraAttributes.of({LOOKUPS: note}))) == ()


def test_converter_without_files_reads_nothing() -> None:
    rows = ReferencedRows(vocabulary=Vocabulary(), schema=data_schema_of(THEIRS))
    made = make_converter(lookup(rows, take={"people": "theirs"}), OURS.schema)
    assert isinstance(made, Lookup)
    assert made.schema.field("theirs").type == pa.int64()
    assert ConverterContext(schema=OURS.schema).rows is None
