"""Clauses ENGINE-1 to ENGINE-4 and ENGINE-8: names, errors, registry and messages, without a running engine."""

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import odf_engines.contract
import odf_engines.registry
from odf_engines import errors
from odf_engines.contract import Grade, GradeLevel, IngestRequest, Limits, QueryRequest, QueryTable
from odf_engines.host.messages import decode_message, encode_message, error_from_fields, error_to_fields
from odf_engines.registry import get_engine, installed_engines
from odf_protocol.events import MergeStrategySnapshot, ReadStepCsv
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, transform_request

EVERY_ERROR = [
    errors.InvalidQueryError("no such column", position="1:19"),
    errors.InvalidQueryError("empty"),
    errors.NotReproducibleError("rand()", "every run differs", "xxhash64(id)"),
    errors.InvalidSourceError("data.csv", "column id is missing"),
    errors.LimitExceededError("output_rows", allowed=10, found=11),
    errors.LimitExceededError("wall_s", allowed=0.5),
    errors.EngineFailureError("ended with code 1"),
    errors.LimitExceededError("memory_bytes", allowed=1, where="block 7"),
]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (EVERY_ERROR[0], "invalid query at 1:19: no such column"),
        (EVERY_ERROR[1], "invalid query: empty"),
        (EVERY_ERROR[2], "cannot be re-executed: rand(): every run differs; instead: xxhash64(id)"),
        (EVERY_ERROR[3], "unusable source data.csv: column id is missing"),
        (EVERY_ERROR[4], "limit output_rows reached: allowed 10, found 11"),
        (EVERY_ERROR[5], "limit wall_s reached: allowed 0.5"),
        (EVERY_ERROR[6], "engine failure: ended with code 1"),
        (errors.EngineMissingError("flink", ["spark"]), "engine 'flink' is not installed (installed: spark)"),
        (
            errors.EngineMissingError("loud", ["spark"], capability="ingest"),
            "engine 'loud' does not offer ingest (offered by: spark)",
        ),
        (
            errors.EngineMissingError("spark", remedy="pip install it").because("a join"),
            "a join; engine 'spark' is not installed (installed: none); pip install it brings it",
        ),
        (errors.EngineMissingError("spark"), "engine 'spark' is not installed (installed: none)"),
        (errors.SandboxUnavailableError("no bwrap"), "no sandbox, so no foreign query is run: no bwrap"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_say_what_happened_in_one_line(error, line):
    assert str(error) == line
    assert isinstance(error, errors.EngineError)


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_errors_cross_the_sandbox(error):
    crossed = error_from_fields(json.loads(json.dumps(error_to_fields(error))))
    assert type(crossed) is type(error)
    assert str(crossed) == str(error)


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        {},
        {"kind": "SystemExit", "message": "x"},
        {"kind": "SandboxUnavailableError", "reason": "x"},
        {"kind": "InvalidQueryError", "message": 3},
        {"kind": "NotReproducibleError", "expression": "x"},
    ],
)
def test_error_of_no_known_shape_is_a_failure_of_the_engine(fields):
    assert type(error_from_fields(fields)) is errors.EngineFailureError


def test_long_texts_of_errors_are_cut():
    crossed = error_from_fields({"kind": "InvalidQueryError", "message": "x" * 100_000})
    assert len(str(crossed)) < 5_000


def test_installed_engine_is_found_in_any_case():
    assert "spark" in installed_engines()
    assert get_engine("Spark").name == "spark"
    assert get_engine("spark").name == "spark"


def test_missing_engine_names_itself_and_those_that_are_there():
    with pytest.raises(errors.EngineMissingError) as caught:
        get_engine("flink")
    assert caught.value.engine == "flink"
    assert "spark" in caught.value.installed


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """Look at what is installed anew, in the test and behind it."""
    odf_engines.registry._points.cache_clear()
    yield
    odf_engines.registry._points.cache_clear()


@pytest.mark.usefixtures("fresh_registry")
def test_engine_counts_where_all_that_its_extra_brings_is_installed(monkeypatch, tmp_path):
    """ENGINE-2: who lacks a part of it is told the command that brings it."""
    described = tmp_path / "engines_of_others-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: engines-of-others\nVersion: 1.0\nProvides-Extra: whole\nProvides-Extra: half\n"
        "Requires-Dist: pyarrow>=1; extra == 'whole'\n"
        "Requires-Dist: pyarrow>=1; extra == 'half'\nRequires-Dist: no-such-package; extra == 'half'\n"
    )
    factory = "odf_engines.arrow.engine:ArrowEngine"
    (described / "entry_points.txt").write_text(
        f"[odf_engines]\nplain = {factory}\nthere = {factory} [whole]\nabsent = {factory} [half]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert {"plain", "there"} <= {*installed_engines()}
    assert "absent" not in installed_engines()
    with pytest.raises(errors.EngineMissingError, match=r"; pip install 'engines-of-others\[half\]' brings it$"):
        get_engine("Absent")


@pytest.mark.usefixtures("fresh_registry")
def test_engine_of_another_package_is_found(monkeypatch):
    point = EntryPoint("Other", "odf_spark.engine:SparkEngine", odf_engines.registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(odf_engines.registry, "entry_points", lambda group: [point])
    assert get_engine("other") is not None


@pytest.mark.parametrize(
    "request_",
    [
        transform_request("SELECT 1", orders_input([Path("/data/a.parquet")], (0, 9), [1, 2]), prev_watermark_ms=5),
        QueryRequest(
            tables=(QueryTable(name="a.b", vocabulary=Vocabulary(), schema=ORDERS, slices=(Path("/data/b"),)),),
            sql="SELECT 'é\u2028' AS x",
            as_of=Timestamp(1, 2),
        ),
        IngestRequest(
            dataset_id="did:odf:x",
            read=ReadStepCsv(header=True),
            preprocess=None,
            merge=MergeStrategySnapshot(primary_key=("id",)),
            vocabulary=Vocabulary(event_time="day"),
            source_path=Path("/data/c.csv"),
            source_name="c.csv",
            known_schema=None,
            state_path=None,
            system_time=Timestamp(3),
            fallback_event_time=Timestamp(4),
            next_offset=0,
            limits=Limits(memory_bytes=1),
        ),
    ],
    ids=["transform", "query", "ingest"],
)
def test_requests_cross_the_sandbox_as_one_line(request_):
    line = encode_message({"request": request_}, str)
    assert "\n" not in line
    assert line.isascii()
    assert decode_message(line) == {"request": request_}


def test_every_path_of_a_request_is_shown_where_the_sandbox_has_it():
    request = transform_request("SELECT 1", orders_input([Path("/data/a"), Path("/data/b")], (0, 9)))
    shown = decode_message(encode_message(request, lambda path: f"/exchange/in/1/{path.name}"))
    assert shown.inputs[0].slices == (Path("/exchange/in/1/a"), Path("/exchange/in/1/b"))


def test_what_is_no_part_of_the_contract_is_not_sent():
    with pytest.raises(TypeError, match="object"):
        encode_message({"request": object()}, str)
    with pytest.raises(ValueError, match="cannot be distinguished"):
        encode_message({"$": "Path"}, str)


def test_contract_lists_what_it_exports():
    names = odf_engines.contract.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(odf_engines.contract, name) for name in names)
    assert Grade(level=GradeLevel.REJECTED).level == "rejected"
