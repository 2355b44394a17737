"""The gate for derivatives: steps are run again, with a real engine, and nothing that differs gets in.

The forger here holds the publisher's keys: hashes, links and signatures are always right. Every rejection is checked to
change no byte of the home and to leave its evidence whole (``Judge.reject``).
"""

import html
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from odf_engines.contract import Limits
from odf_engines.errors import LimitExceededError
from odf_engines.reading.slices import logical_hash_of, read_slice
from odf_node.cli.main import main
from odf_node.composition import open_node
from odf_node.ports.progress import Count, Silence
from odf_node.records.access import READS_EVERYTHING
from odf_node.store import MetadataStore
from odf_node.trust.verifying import VerificationFinding, Verifier
from odf_pages.dataset_pages import show_version
from odf_pages.rendering import render
from odf_pages.requests import PageRequest, Viewer
from odf_protocol.attestations import Attestation, decode_attestation
from odf_protocol.divergence import CAUSE_TEXTS, Cause
from odf_protocol.errors import MalformedError
from odf_protocol.events import AddData, DatasetKind, ExecuteTransform, Seed, SetDataSchema
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy, Trust
from odf_protocol.step_metrics import NO_STATE, RowsByOperation, StateSize, StepMetrics
from odf_protocol.step_record import EngineIdentity, InputWatermark
from odf_protocol.step_record_codec import decode_step_record, sign_step_record
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.homes import make_home
from support.offers import NOON, Judge, PeerChain, PublisherHome, root_chain, select
from support.sandboxes import stop_before_it_is_asked
from support.signing import NEW_KEY, OTHER_KEY, dataset_of

pytestmark = pytest.mark.spark

QUERY = "SELECT event_time, city, people * 2 AS doubled FROM in0"
OTHER_QUERY = "SELECT event_time, city, people * 3 AS doubled FROM in0"
FIRST_STEP, REDEFINED, SECOND_STEP, THIRD_STEP = 3, 4, 5, 6  # blocks of the derivative


@dataclass(frozen=True)
class Published:
    """An honest root of three slices, and a derivative of three steps whose query changed after the first."""

    root: PeerChain
    derivative: PeerChain


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, spark_session: Any) -> Published:
    folder = tmp_path_factory.mktemp("publisher")
    home = PublisherHome(Judge.create(folder / "home", spark_session))
    root = root_chain(folder, slices=0).add_rows([("Oslo", 1), ("", 2), (None, 3)])
    home.keep(root)
    derivative = PeerChain(folder, key=NEW_KEY, name="doubled")
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE)).add(select(QUERY, root.id))
    home.keep(derivative)
    home.run(derivative, at=Timestamp(NOON.seconds + 100))
    home.keep(derivative.add(select(OTHER_QUERY, root.id), at=Timestamp(NOON.seconds + 200)))
    for n, rows in enumerate(([("Rome", 5), ("Rome", 6)], [("Turin", 7)])):
        home.keep(root.add_rows(rows))
        home.run(derivative, at=Timestamp(NOON.seconds + 300 + n))
    steps = [b.sequence_number for b in derivative.blocks if isinstance(b.event, ExecuteTransform)]
    assert steps == [FIRST_STEP, SECOND_STEP, THIRD_STEP]
    return Published(root, derivative)


@pytest.fixture
def judge(tmp_path: Path, spark_session: Any, published: Published) -> Judge:
    """A node that has accepted the root."""
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(published.root)
    return judge


def forged(published: Published, number: int, change: Callable[[Any], Any]) -> PeerChain:
    """Change the event of a step; records that no longer fit are left out, as a forger would."""
    chain = published.derivative.replacing(number, change)
    chain.step_records = [None] * len(chain.blocks)
    return chain


def with_cells(published: Published, number: int, column: str, values: list[Any]) -> PeerChain:
    """Replace the values of a column in the slice of a step, and make everything fit again."""
    chain = published.derivative.copy(step_records=[None] * len(published.derivative.blocks))
    data = chain.blocks[number].event.new_data  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(chain.files[data.physical_hash]))
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    return chain.replacing_slice(number, table.set_column(index, field, pa.array(values, field.type)))


def verifier_of(judge: Judge, store: MetadataStore) -> Verifier:
    return Verifier(make_home(judge.home, store), judge.engines)


def test_honest_derivative_is_accepted_step_by_step_each_with_its_own_query(judge: Judge, published: Published) -> None:
    chain = published.derivative
    early = chain.up_to(FIRST_STEP)
    first = judge.accept(early)
    second = judge.accept(chain, base=early.head)

    assert (first.replayed_steps, second.replayed_steps) == (1, 2)
    record = judge.record("doubled")
    assert record is not None
    assert (record.trust, record.head) == (Trust.REEXECUTED, chain.head)
    with judge.opened() as store:
        statements = list(_reexecutes_attested(store, chain))
        stated: list[tuple[str, Count | None]] = []
        finding = Verifier(make_home(judge.home, store), judge.engines).verify(
            record, replay=True, on_progress=lambda text, count=None: stated.append((text, count))
        )
        records = [store.find_step_record(chain.id, block.hash) for block in chain.blocks]
    assert [[step.agrees for step in statement.steps] for statement in statements] == [[True], [True, True]]
    assert finding.is_valid, finding
    assert finding.replayed_steps == 3
    assert [count for text, count in stated if text == "re-executing"] == [Count(done, 3, "steps") for done in range(3)]
    assert [None if item is None else item.raw for item in records] == chain.step_records


def _reexecutes_attested(store: MetadataStore, chain: PeerChain) -> Iterator[Attestation]:
    for item in store.iter_attestations(chain.id):
        with suppress(MalformedError):  # statements of other kinds are kept beside them
            yield decode_attestation(item.raw)


def test_forged_cell_is_found_by_re_execution_and_named(judge: Judge, published: Published) -> None:
    chain = with_cells(published, SECOND_STEP, "doubled", [15, 19])

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-7 step-is-reproduced")

    assert report["block"] == SECOND_STEP
    cells = [(c["offset"], c["column"], c["published"], c["recomputed"]) for c in report["divergence"]["cells"]]
    assert cells == [(4, "doubled", "19", "18")]
    folder = Path(report["folder"])
    forged_hash = chain.blocks[SECOND_STEP].event.new_data.physical_hash  # type: ignore[union-attr]
    assert (folder / "published.parquet").read_bytes() == chain.files[forged_hash]
    assert read_slice(folder / "recomputed.parquet").column("doubled").to_pylist() == [15, 18]


def test_rejected_forgery_is_attested_by_a_node_that_has_a_key(judge: Judge, published: Published) -> None:
    judge.accept(published.derivative.up_to(FIRST_STEP))  # makes the node's key
    chain = with_cells(published, SECOND_STEP, "doubled", [15, 19])

    report = judge.reject(chain.proposal(chain.up_to(FIRST_STEP).head), chain.files, rule="PLAN-7")

    statement = decode_attestation((Path(report["folder"]) / "attestation.json").read_bytes())
    assert [step.agrees for step in statement.steps] == [False]
    assert statement.last.hash == chain.blocks[SECOND_STEP].hash


def test_collision_of_the_logical_hash_is_found(judge: Judge, published: Published) -> None:
    """``['', null]`` and ``[null, '']`` have one arrow0 hash; the values are compared as well."""
    chain = with_cells(published, FIRST_STEP, "city", ["Oslo", None, ""])
    honest, false = (
        c.blocks[FIRST_STEP].event.new_data  # type: ignore[union-attr]
        for c in (published.derivative, chain)
    )
    assert honest.logical_hash == false.logical_hash
    assert honest.physical_hash != false.physical_hash

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-7 step-is-reproduced")

    assert report["divergence"]["columns"] == ["city"]
    assert report["divergence"]["differing_rows"] == 2


def test_other_parquet_file_of_the_same_values_is_accepted(judge: Judge, published: Published) -> None:
    chain = published.derivative.copy(step_records=[None] * len(published.derivative.blocks))
    data = chain.blocks[FIRST_STEP].event.new_data  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(chain.files[data.physical_hash]))
    changed = chain.replacing_slice(FIRST_STEP, table.replace_schema_metadata({"writer": "another"}))
    assert changed.blocks[FIRST_STEP].event.new_data.physical_hash != data.physical_hash  # type: ignore[union-attr]

    assert judge.accept(changed).replayed_steps == 3


@pytest.mark.parametrize(
    ("number", "change", "rule"),
    [
        pytest.param(
            THIRD_STEP, lambda e: replace(e, new_watermark=Timestamp(NOON.seconds + 9)), "PLAN-7", id="watermark"
        ),
        pytest.param(THIRD_STEP, lambda e: replace(e, new_data=None, new_watermark=NOON), "PLAN-7", id="rows-left-out"),
        pytest.param(
            FIRST_STEP,
            lambda e: replace(e, query_inputs=(replace(e.query_inputs[0], prev_offset=0),)),
            "PLAN-9",
            id="first-row-skipped",
        ),
        pytest.param(
            THIRD_STEP,
            lambda e: replace(e, query_inputs=(replace(e.query_inputs[0], new_offset=4),)),
            "CHAIN-27",
            id="offset-of-no-progress",
        ),
        pytest.param(
            SECOND_STEP,
            lambda e: replace(e, query_inputs=(replace(e.query_inputs[0], new_offset=3),)),
            "PLAN-5",
            id="offset-in-the-middle",
        ),
        pytest.param(
            THIRD_STEP,
            lambda e: replace(e, query_inputs=(replace(e.query_inputs[0], dataset_id=dataset_of(OTHER_KEY)),)),
            "CHAIN-25",
            id="other-input",
        ),
        pytest.param(
            THIRD_STEP,
            lambda e: replace(
                e, query_inputs=(replace(e.query_inputs[0], new_block_hash=Multihash.of_sha3_256(b"none")),)
            ),
            "ACCEPT-2",
            id="block-that-no-input-has",
        ),
    ],
)
def test_step_that_claims_something_else_is_rejected(
    judge: Judge, published: Published, number: int, change: Callable[[Any], Any], rule: str
) -> None:
    chain = forged(_until(published, number), number, change)

    assert judge.reject(chain.proposal(), chain.files, rule=rule)["block"] in {number, None}


def _until(published: Published, number: int) -> Published:
    return Published(published.root, published.derivative.up_to(number))


def test_interval_that_goes_back_is_rejected(judge: Judge, published: Published) -> None:
    """The rows stay where they are, but the input would be read from an earlier block next time."""
    root = published.root

    def go_back(event: ExecuteTransform) -> ExecuteTransform:
        back = replace(event.query_inputs[0], new_block_hash=root.blocks[1].hash, new_offset=None)
        return replace(event, query_inputs=(back,), new_data=None, new_watermark=NOON)

    chain = forged(_until(published, THIRD_STEP), THIRD_STEP, go_back)

    judge.reject(chain.proposal(), chain.files, rule="PLAN-5 recorded-blocks-go-forward")


def test_part_of_the_chain_under_another_query_is_rejected(judge: Judge, published: Published) -> None:
    """The same rows under a query that was never in force when they were made."""
    chain = forged(published, REDEFINED, lambda event: select(QUERY, published.root.id))

    assert judge.reject(chain.proposal(), chain.files, rule="PLAN-7")["block"] == SECOND_STEP


def test_query_that_nobody_can_repeat_is_rejected(judge: Judge, published: Published) -> None:
    random = select("SELECT event_time, city, rand() AS doubled FROM in0", published.root.id)
    chain = forged(_until(published, FIRST_STEP), 1, lambda event: random)

    judge.reject(chain.proposal(), chain.files, rule="PLAN-7 query-can-be-repeated")


def test_schema_other_than_the_query_gives_is_rejected(judge: Judge, published: Published) -> None:
    """Columns are renamed in schema and slice alike, so that the rows fit; the query names them otherwise."""
    chain = published.derivative.up_to(FIRST_STEP)
    chain.step_records = [None] * len(chain.blocks)
    schema = chain.blocks[2].event
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    renamed = replace(
        schema.schema,
        fields=tuple(replace(f, name="tripled") if f.name == "doubled" else f for f in schema.schema.fields),
    )
    chain = chain.replacing(2, lambda event: replace(event, schema=renamed))
    data = chain.blocks[FIRST_STEP].event.new_data  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(chain.files[data.physical_hash]))
    chain = chain.replacing_slice(
        FIRST_STEP, table.rename_columns([{"doubled": "tripled"}.get(n, n) for n in table.column_names])
    )

    assert judge.reject(chain.proposal(), chain.files, rule="PLAN-7")["divergence"]["kind"] == "schema"


def test_data_added_past_the_query_is_rejected(judge: Judge, published: Published, tmp_path: Path) -> None:
    chain = published.derivative.copy()
    last = chain.next_offset() - 1
    chain.add(AddData(prev_offset=last, new_watermark=NOON), at=Timestamp(NOON.seconds + 999))

    judge.reject(chain.proposal(), chain.files, rule="CHAIN-10")


# Step records


def _other_record(published: Published, number: int, key: bytes, **changes: Any) -> PeerChain:
    chain = published.derivative.copy()
    raw = chain.step_records[number]
    assert raw is not None
    chain.step_records[number] = sign_step_record(key, replace(decode_step_record(raw).record, **changes))
    return chain


def test_replay_record_by_another_key_is_rejected(judge: Judge, published: Published) -> None:
    chain = _other_record(published, SECOND_STEP, OTHER_KEY)

    judge.reject(chain.proposal(), chain.files, rule="REPLAY-5 signed-by-the-dataset-key")


@pytest.mark.parametrize("changes", [{"next_offset": 0}, {"system_time": NOON}, {"dataset_id": dataset_of(OTHER_KEY)}])
def test_replay_record_of_another_step_is_rejected(judge: Judge, published: Published, changes: dict[str, Any]) -> None:
    chain = _other_record(published, SECOND_STEP, NEW_KEY, **changes)

    judge.reject(chain.proposal(), chain.files, rule="REPLAY-6")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"transform": Multihash.of_sha3_256(b"another query")}, "REPLAY-8 transform-in-force"),
        ({"vocabulary": Vocabulary(offset="number")}, "REPLAY-8 vocabulary-in-force"),
        ({"prev_watermark": NOON}, "REPLAY-8 watermark-in-force"),
    ],
)
def test_replay_record_of_another_definition_is_rejected(
    judge: Judge, published: Published, changes: dict[str, Any], rule: str
) -> None:
    chain = _other_record(published, SECOND_STEP, NEW_KEY, **changes)

    judge.reject(chain.proposal(), chain.files, rule=rule)


def test_replay_record_of_other_slices_is_rejected(judge: Judge, published: Published) -> None:
    raw = published.derivative.step_records[SECOND_STEP]
    assert raw is not None
    read = decode_step_record(raw).record.inputs[0]
    other = replace(read.slices[0], physical_hash=Multihash.of_sha3_256(b"another file"))
    chain = _other_record(published, SECOND_STEP, NEW_KEY, inputs=(replace(read, slices=(other,)),))

    judge.reject(chain.proposal(), chain.files, rule="REPLAY-7 slices-that-are-held")


def test_replay_record_of_another_block_is_rejected(judge: Judge, published: Published) -> None:
    chain = published.derivative.copy()
    chain.step_records[THIRD_STEP] = chain.step_records[SECOND_STEP]

    judge.reject(chain.proposal(), chain.files, rule="REPLAY-6")


def test_replay_record_of_other_watermarks_is_rejected(judge: Judge, published: Published) -> None:
    raw = published.derivative.step_records[SECOND_STEP]
    assert raw is not None
    read = decode_step_record(raw).record.inputs[0]
    chain = _other_record(
        published, SECOND_STEP, NEW_KEY, inputs=(replace(read, watermarks=(InputWatermark(NOON, NOON),)),)
    )

    judge.reject(chain.proposal(), chain.files, rule="REPLAY-7 watermarks-of-the-input")


def test_replay_record_of_this_engine_with_other_settings_is_rejected(judge: Judge, published: Published) -> None:
    chain = _other_record(published, SECOND_STEP, NEW_KEY, settings={"spark.sql.ansi.enabled": "false"})

    report = judge.reject(chain.proposal(), chain.files, rule="REPLAY-9 settings-of-the-engine")

    assert "spark.sql.ansi.enabled" in report["found"]


# Figures that records give of their steps


def _figures(published: Published) -> StepMetrics:
    raw = published.derivative.step_records[SECOND_STEP]
    assert raw is not None
    statistics = decode_step_record(raw).record.statistics
    assert statistics is not None
    return statistics


def test_record_says_what_its_step_did(published: Published) -> None:
    figures = _figures(published)

    assert (figures.rows_read, figures.rows_out, figures.late_rows) == ((2,), RowsByOperation(append=2), 0)
    assert figures.state_before == figures.state_after == NO_STATE  # a map
    assert set(figures.milliseconds) == {"starting", "reading", "computing", "checking"}


LIES = {
    "rows-taken-back": ({"rows_out": RowsByOperation(append=1, retract=1)}, "rows-out-of-the-step"),
    "rows-that-are-not-there": ({"rows_out": RowsByOperation(append=3)}, "figures-fit-the-block"),
    "fewer-rows-read": ({"rows_read": (1,)}, "rows-read-of-the-step"),
    "more-rows-read-than-there-are": ({"rows_read": (6,)}, "figures-fit-the-block"),
    "nothing-read": ({"rows_read": (None,)}, "rows-read-of-the-step"),
    "inputs-that-are-not-there": ({"rows_read": (2, 0)}, "figures-fit-the-block"),
    "late-rows": ({"late_rows": 1}, "late-rows-of-the-step"),
    "state-before": ({"state_before": StateSize(rows=1, size_bytes=1)}, "state-before-of-the-step"),
    "state-after": ({"state_after": StateSize(rows=0, size_bytes=1)}, "state-after-of-the-step"),
}


@pytest.mark.parametrize(("lie", "rule"), LIES.values(), ids=LIES)
def test_figures_that_lie_about_a_step_are_rejected(
    judge: Judge, published: Published, lie: dict[str, Any], rule: str
) -> None:
    chain = _other_record(published, SECOND_STEP, NEW_KEY, statistics=structs.replace(_figures(published), **lie))

    judge.reject(chain.proposal(), chain.files, rule=f"REPLAY-14 {rule}")


@pytest.mark.parametrize(
    ("policy", "are"),
    [(None, "compared here, its time by the publisher's words"), ("integrity", "by the publisher's words")],
)
def test_log_and_page_say_whose_words_the_figures_are_replay_15(
    judge: Judge, published: Published, capsys: pytest.CaptureFixture[str], policy: str | None, are: str
) -> None:
    lie = {} if policy is None else {"late_rows": 7}
    chain = _other_record(published, SECOND_STEP, NEW_KEY, statistics=structs.replace(_figures(published), **lie))
    options = {} if policy is None else {"policy": Policy(policy)}
    judge.accept(chain, **options)

    home, logged = ["--home", str(judge.home.path), "log", "doubled", "--all"], {}
    for form in ("json", "oneline", "yaml"):
        assert main([*home, "-o", form]) == 0
        logged[form] = capsys.readouterr().out
    steps = [each for each in map(json.loads, logged["json"].splitlines()) if "statistics" in each]
    assert [each["statisticsAre"] for each in steps] == [are] * 3
    assert steps[1]["statistics"]["lateRows"] == lie.get("late_rows", 0)
    assert logged["oneline"].count(f"({are})") == logged["yaml"].count(f"({are})") == 3
    words = {"dataset": "doubled", "number": str(SECOND_STEP)}
    visit = PageRequest(open_node(judge.home.path), Viewer("somebody", READS_EVERYTHING), words, {})
    around = {"viewer": visit.viewer, "path": "/", "form_word": ""}
    page = render(show_version(visit), around).body
    assert html.unescape(page.decode()).count(f"({are})") == 1


def test_times_are_the_writers_own_and_earlier_builds_give_no_figures(judge: Judge, published: Published) -> None:
    slow = structs.replace(_figures(published), milliseconds={"thinking": 2**50})
    chain = _other_record(published, SECOND_STEP, NEW_KEY, statistics=slow)
    raw = chain.step_records[THIRD_STEP]
    assert raw is not None
    silent = replace(decode_step_record(raw).record, statistics=None)
    chain.step_records[THIRD_STEP] = sign_step_record(NEW_KEY, silent)

    assert judge.accept(chain).replayed_steps == 3


def test_of_another_builds_step_only_the_rows_are_compared(judge: Judge, published: Published) -> None:
    other = EngineIdentity("spark", "3.9.0", Multihash.of_sha3_256(b"another build"))
    figures = structs.replace(_figures(published), late_rows=1, rows_read=(None,))
    lying = structs.replace(figures, rows_out=RowsByOperation(correct_from=1, correct_to=1))
    chain = _other_record(published, SECOND_STEP, NEW_KEY, engine=other, statistics=lying)
    judge.reject(chain.proposal(), chain.files, rule="REPLAY-14 rows-out-of-the-step")

    chain = _other_record(published, SECOND_STEP, NEW_KEY, engine=other, statistics=figures)
    assert judge.accept(chain).replayed_steps == 3


# Records that are stored: whoever writes the database has no key


def _verify(judge: Judge, *, replay: bool = True) -> VerificationFinding:
    record = judge.record("doubled")
    assert record is not None
    with judge.opened() as store:
        return Verifier(make_home(judge.home, store), judge.engines).verify(
            record, replay=replay, on_progress=Silence().on_progress
        )


def _store_record(judge: Judge, chain: PeerChain, number: int, raw: bytes) -> None:
    with judge.opened() as store:
        assert store.find_step_record(chain.id, chain.blocks[number].hash) is not None
    with closing(sqlite3.connect(judge.home.database)) as connection, connection:
        connection.execute("UPDATE replay_records SET raw = ? WHERE sequence_number = ?", (raw, number))


@pytest.mark.parametrize("replay", [True, False], ids=["re-executed", "integrity"])
@pytest.mark.parametrize(
    ("key", "changes", "rule"),
    [
        (OTHER_KEY, {}, "REPLAY-5 signed-by-the-dataset-key"),
        (NEW_KEY, {"next_offset": 0}, "REPLAY-6"),
        (NEW_KEY, {"transform": Multihash.of_sha3_256(b"another query")}, "REPLAY-8"),
        (NEW_KEY, {"settings": {"spark.sql.ansi.enabled": "false"}}, "REPLAY-9"),
        (NEW_KEY, {"inputs": "none"}, "REPLAY-7 slices-that-are-held"),
    ],
    ids=["signature", "step", "query", "settings", "slices"],
)
def test_verify_finds_a_stored_replay_record_that_is_wrong(
    judge: Judge, published: Published, key: bytes, changes: dict[str, Any], rule: str, replay: bool
) -> None:
    judge.accept(published.derivative)
    raw = published.derivative.step_records[SECOND_STEP]
    assert raw is not None
    if "inputs" in changes:
        read = decode_step_record(raw).record.inputs[0]
        other = replace(read.slices[0], physical_hash=Multihash.of_sha3_256(b"another file"))
        changes = {"inputs": (replace(read, slices=(other,)),)}
    chain = _other_record(published, SECOND_STEP, key, **changes)
    wrong = chain.step_records[SECOND_STEP]
    assert wrong is not None
    _store_record(judge, published.derivative, SECOND_STEP, wrong)

    finding = _verify(judge, replay=replay)

    assert not finding.is_valid
    assert finding.rule.startswith(rule)
    if rule.startswith("REPLAY-7"):
        assert finding.divergence is not None
        assert finding.divergence["cause"] == "missing-input"


def test_stored_replay_record_that_is_no_document_is_found(judge: Judge, published: Published) -> None:
    judge.accept(published.derivative)
    _store_record(judge, published.derivative, SECOND_STEP, b"{}")

    assert not _verify(judge, replay=False).is_valid


OTHER_ENGINE = EngineIdentity("spark", "4.2.0", Multihash.of_sha3_256(b"another build"))


def test_step_of_another_engine_that_is_reproduced_is_valid_and_said_so(judge: Judge, published: Published) -> None:
    chain = _other_record(published, SECOND_STEP, NEW_KEY, engine=OTHER_ENGINE)
    chain.step_records[THIRD_STEP] = None
    judge.accept(chain)

    finding = _verify(judge)

    assert (finding.is_valid, finding.replayed_steps) == (True, 3)
    assert finding.warnings[:2] == (
        f"1 of 3 steps were made by another build of the engine, spark 4.2.0 (digest {OTHER_ENGINE.digest})",
        "1 of 3 steps have no step record",
    )


@pytest.mark.parametrize(
    ("engine", "cause"),
    [(None, "tampering"), ("here", "tampering"), (OTHER_ENGINE, "engine-version")],
    ids=["no-record", "this-engine", "another-engine"],
)
def test_forged_cell_is_classified_by_what_the_record_says_of_the_engine(
    judge: Judge, published: Published, engine: EngineIdentity | str | None, cause: str
) -> None:
    chain = with_cells(published, SECOND_STEP, "doubled", [15, 19])
    if engine is not None:
        changes = {} if engine == "here" else {"engine": engine}
        chain.step_records[SECOND_STEP] = _other_record(published, SECOND_STEP, NEW_KEY, **changes).step_records[
            SECOND_STEP
        ]

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-7 step-is-reproduced")

    assert report["divergence"]["cause"] == cause
    assert report["reason"].endswith(CAUSE_TEXTS[Cause(cause)])


def test_verify_names_missing_inputs_for_machines(published: Published, tmp_path: Path) -> None:
    judge = Judge.create(tmp_path / "judge")
    judge.take(published.derivative.proposal(), published.derivative.files, policy=Policy.INTEGRITY)

    finding = _verify(judge)

    assert (finding.is_valid, finding.replayed_steps) == (True, None)
    assert finding.divergence is not None
    assert (finding.divergence["kind"], finding.divergence["cause"]) == ("inputs", "missing-input")
    assert str(published.root.id) in finding.divergence["detail"]


def test_step_that_reaches_a_limit_is_named(
    judge: Judge, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.engines.limits = Limits(output_rows=2)

    reported = f"output_rows reached at writing its rows, block {FIRST_STEP}: allowed 2, found 3"
    with pytest.raises(LimitExceededError, match=reported):
        judge.accept(published.derivative)

    stop_before_it_is_asked(monkeypatch)
    judge.engines.limits = Limits(wall_s=0.001)
    with pytest.raises(LimitExceededError, match=f"wall_s reached at (.*, )?block {FIRST_STEP}: allowed 0.001"):
        judge.accept(published.derivative)


# What the policy asks for


def test_derivative_whose_input_is_not_here_is_rejected_and_told_what_is_missing(
    published: Published, tmp_path: Path
) -> None:
    judge = Judge.create(tmp_path / "judge")
    chain = published.derivative

    for policy in (None, Policy.REEXECUTE):
        report = judge.reject(chain.proposal(), chain.files, rule="ACCEPT-2", policy=policy)
        assert "input 'in0'" in report["reason"]
    judge.take(chain.proposal(), chain.files, policy=Policy.INTEGRITY)
    record = judge.record("doubled")
    assert record is not None
    assert record.trust is Trust.SIGNED


def test_derivative_whose_input_lacks_a_block_is_rejected(
    published: Published, tmp_path: Path, spark_session: Any
) -> None:
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(published.root.up_to(2))
    chain = published.derivative

    report = judge.reject(chain.proposal(), chain.files, rule="ACCEPT-2")

    assert "pull it again" in report["reason"]
    assert judge.accept(chain.up_to(FIRST_STEP)).replayed_steps == 1


@pytest.mark.parametrize("number", [1, REDEFINED])
def test_derivative_of_an_engine_that_is_not_here_is_rejected(judge: Judge, published: Published, number: int) -> None:
    """Also where only an early part of the chain used it."""
    query = QUERY if number == 1 else OTHER_QUERY
    chain = forged(published, number, lambda event: select(query, published.root.id, engine="flink"))

    assert "flink" in judge.reject(chain.proposal(), chain.files, rule="ACCEPT-2")["reason"]


def test_acceptance_without_re_execution_is_never_forgotten(judge: Judge, published: Published) -> None:
    """A forged beginning taken under a weak policy does not become "re-executed" by an honest continuation."""
    chain = with_cells(published, FIRST_STEP, "doubled", [2, 4, 7])
    early = chain.up_to(REDEFINED)
    judge.take(early.proposal(), early.files, policy=Policy.INTEGRITY)

    assert judge.accept(chain, base=early.head).replayed_steps == 2

    record = judge.record("doubled")
    assert record is not None
    assert record.trust is Trust.SIGNED
    with judge.opened() as store:
        finding = Verifier(make_home(judge.home, store), judge.engines).verify(
            record, replay=True, on_progress=Silence().on_progress
        )
    assert (finding.is_valid, finding.rule) == (False, "PLAN-7 step-is-reproduced")
    assert finding.divergence is not None


@pytest.mark.parametrize("policy", [Policy.UNSIGNED, None])
def test_unsigned_derivative_is_re_executed_as_well(judge: Judge, published: Published, policy: Policy | None) -> None:
    """No policy but ``integrity`` leaves re-execution out; without signatures nothing but ``unsigned`` accepts."""
    honest = published.derivative.copy(signatures=[None] * len(published.derivative.blocks))
    lying = with_cells(published, SECOND_STEP, "doubled", [15, 19])
    lying = lying.copy(signatures=[None] * len(lying.blocks))
    if policy is None:
        judge.reject(honest.proposal(signed_head=None), honest.files, rule="ACCEPT-3")
        return

    judge.reject(lying.proposal(signed_head=None), lying.files, rule="PLAN-7", policy=policy)
    assert judge.take(honest.proposal(signed_head=None), honest.files, policy=policy).replayed_steps == 3
    record = judge.record("doubled")
    assert record is not None
    assert record.trust is Trust.UNSIGNED


def test_inputs_are_our_own_copies_and_never_what_came_along(
    published: Published, tmp_path: Path, spark_session: Any
) -> None:
    """The forger serves a root and a derivative that fit each other, but we hold the true root."""
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(published.root)
    chain = with_cells(published, FIRST_STEP, "doubled", [20, 40, 60])
    data = published.root.blocks[2].event.new_data  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(published.root.files[data.physical_hash]))
    index = table.schema.get_field_index("people")
    false_root = published.root.replacing_slice(
        2, table.set_column(index, table.schema.field(index), pa.array([10, 20, 30]))
    )

    judge.reject(chain.proposal(), {**chain.files, **false_root.files}, rule="PLAN-7")
    assert logical_hash_of(judge.objects.get_path(data.physical_hash)) == data.logical_hash
