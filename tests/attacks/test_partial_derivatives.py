"""Derivatives whose steps are each what their query gives, and which are still not their query over the whole input.

The forger holds the publisher's keys and a node of its own, so that hashes, links, signatures and every single step
are right. Each rejected attack is checked to change no byte of the home (``Judge.reject``).
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits
from odf_node.acceptance.attesting import describe_attestation
from odf_node.datasets.chains import find_partial, load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.derive.query_history import list_queries
from odf_node.derive.transforms import StepBuilder
from odf_node.ports.progress import Silence
from odf_node.trust.auditing import publish_finding
from odf_node.trust.verifying import VerificationFinding, Verifier
from odf_protocol.acceptance_statements import AcceptanceStatement
from odf_protocol.events import (
    AddData,
    Checkpoint,
    DatasetKind,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    Seed,
    SetDataSchema,
    SetTransform,
    SetVocab,
)
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy, Trust
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.statements import decode_statement
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import VerificationStatement
from support.cli_in_process import run_here
from support.homes import make_home
from support.offers import NOON, Judge, PeerChain, PublisherHome, SharedEngine, hash_of_rows, root_chain, select
from support.signing import NEW_KEY, OTHER_KEY

pytestmark = pytest.mark.spark

QUERY = "SELECT event_time, city, people * 2 AS doubled FROM in0"
FALSE_QUERY = "SELECT event_time, city, people * 0 AS doubled FROM in0"


@dataclass
class Forger:
    """A node that makes every step with a real engine, over whatever part of its inputs it likes."""

    home: PublisherHome
    session: Any
    root: PeerChain
    decoy: PeerChain
    chain: PeerChain

    def declare(self, query: str = QUERY, source: PeerChain | None = None) -> "Forger":
        self.chain.add(select(query, (source or self.root).id), at=self._now())
        return self

    def step(
        self, first: int | None, last: int, *, source: PeerChain | None = None, at: Timestamp | None = None
    ) -> "Forger":
        """Run the query in force over the blocks after ``first`` (None: from the beginning) up to ``last``."""
        source, at = source or self.root, at or self._now()
        recorded = ExecuteTransformInput(
            dataset_id=source.id,
            prev_block_hash=None if first is None else source.blocks[first].hash,
            new_block_hash=source.blocks[last].hash,
            prev_offset=None if first is None else _last_row(source, first),
            new_offset=_last_row(source, last) if _last_row(source, last) != _last_row(source, first) else None,
        )
        view = _view_of(self.chain)
        with self.home.judge.opened() as store:
            builder = StepBuilder(store, self.home.judge.objects)
            state = None
            if view.query_checkpoint is not None:
                state = self.chain.folder / "state"
                state.write_bytes(self.chain.files[view.query_checkpoint])
            planned = (builder.plan_recorded(recorded),)
            request = builder.build(view, planned, system_time=at, limits=Limits(), checkpoint=state).request
            rows = EngineRows(store, self.home.judge.objects, self.home.judge.engines.rows)
            response = self.session.transform(rows.put_into(request, planned))
        if view.schema is None:
            self.chain.add(SetDataSchema(schema=data_schema_of(response.schema)), at=at)
        new_data = None
        if response.data_path is not None:
            content = response.data_path.read_bytes()
            new_data = DataSlice(
                physical_hash=Multihash.of_sha3_256(content),
                logical_hash=hash_of_rows(content, self.chain.folder),
                offset_interval=response.offset_interval,
                size=len(content),
            )
            self.chain.files[new_data.physical_hash] = content
        new_checkpoint = None
        if response.checkpoint_path is not None:
            content = response.checkpoint_path.read_bytes()
            new_checkpoint = Checkpoint(physical_hash=Multihash.of_sha3_256(content), size=len(content))
            self.chain.files[new_checkpoint.physical_hash] = content
        self.chain.add(
            ExecuteTransform(
                query_inputs=(recorded,),
                prev_checkpoint=view.prev_checkpoint,
                prev_offset=view.last_offset,
                new_data=new_data,
                new_checkpoint=new_checkpoint,
                new_watermark=response.watermark,
            ),
            at=at,
        )
        return self

    def _now(self) -> Timestamp:
        return Timestamp(NOON.seconds + 1_000 + len(self.chain.blocks))


def _last_row(source: PeerChain, number: int | None) -> int | None:
    blocks = [] if number is None else source.blocks[: number + 1]
    ends = [b.event.new_data.offset_interval.end for b in blocks if isinstance(b.event, AddData) and b.event.new_data]
    return ends[-1] if ends else None


def _view_of(chain: PeerChain) -> Any:
    from odf_protocol.dataset_view import apply, start_view

    view = start_view(chain.blocks[0])
    for block in chain.blocks[1:]:
        view = apply(view, block)
    return view


@pytest.fixture
def forger(tmp_path: Path, spark_session: Any) -> Forger:
    folder = tmp_path / "forger"
    folder.mkdir()
    home = PublisherHome(Judge.create(folder / "home", spark_session))
    root = root_chain(folder, slices=0)
    for n in range(4):  # blocks 2 to 5
        root.add_rows([(f"a{n}", n), (f"b{n}", 10 + n)])
    root.add(AddData(prev_offset=7, new_watermark=NOON)).add_rows([("c", 20)])  # blocks 6 and 7
    decoy = PeerChain(folder, key=OTHER_KEY, name="decoy")
    decoy.add(Seed(dataset_id=decoy.id, dataset_kind=DatasetKind.ROOT)).add(root.blocks[1].event)
    decoy.add_rows([("decoy", 1)])
    home.keep(root)
    home.keep(decoy)
    chain = PeerChain(folder, key=NEW_KEY, name="doubled")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
    return Forger(home, spark_session, root, decoy, chain)


@pytest.fixture
def judge(tmp_path: Path, spark_session: Any, forger: Forger) -> Judge:
    """A node that has accepted both inputs."""
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(forger.root)
    judge.take(forger.decoy.proposal(source_url="http://peer.example/decoy"), forger.decoy.files)
    return judge


def _verify(judge: Judge) -> VerificationFinding:
    record = judge.record("doubled")
    assert record is not None
    with judge.opened() as store:
        return Verifier(make_home(judge.home, store), judge.engines).verify(record, on_progress=Silence().on_progress)


def _ground(judge: Judge) -> str:
    record = judge.record("doubled")
    assert record is not None
    with judge.opened() as store:
        return record.trust.in_words(find_partial(store, record))


LAPSES: dict[str, tuple[Callable[[Forger], Forger], str]] = {
    "first-step-begins-in-the-middle": (lambda it: it.declare().step(3, 5), "leaves out rows 0 to 3"),
    "back-from-a-decoy-behind-a-gap": (
        lambda it: (
            it.declare().step(None, 2).declare(source=it.decoy).step(None, 2, source=it.decoy).declare().step(3, 5)
        ),
        "leaves out rows 2 to 3",
    ),
    "back-from-a-decoy-taking-rows-twice": (
        lambda it: (
            it.declare().step(None, 3).declare(source=it.decoy).step(None, 2, source=it.decoy).declare().step(None, 5)
        ),
        "takes rows 0 to 3",
    ),
}


@pytest.mark.parametrize("name", LAPSES)
def test_steps_that_leave_input_rows_out_or_take_them_twice_are_rejected(
    judge: Judge, forger: Forger, name: str
) -> None:
    make, text = LAPSES[name]
    chain = make(forger).chain

    for policy in (None, Policy.REEXECUTE):
        report = judge.reject(chain.proposal(), chain.files, rule="PLAN-9", policy=policy)
        assert text in report["reason"]


@pytest.mark.parametrize("name", LAPSES)
def test_partial_chain_that_the_user_takes_knowingly_is_never_shown_as_re_executed(
    judge: Judge, forger: Forger, name: str
) -> None:
    make, text = LAPSES[name]
    chain = make(forger).chain
    judge.accept(chain, policy=Policy.INTEGRITY)

    assert _ground(judge) == "signed"
    finding = _verify(judge)
    assert finding.is_valid  # every step is what its query gives
    assert text in finding.partial
    assert any("partial: " in line for line in finding.describe())


def test_unsigned_partial_chain_is_named_in_the_grounds(judge: Judge, forger: Forger) -> None:
    chain = forger.declare().step(3, 5).chain
    chain = chain.copy(signatures=[None] * len(chain.blocks))

    report = judge.take(chain.proposal(signed_head=None), chain.files, policy=Policy.UNSIGNED)

    assert "(partial: block 3 leaves out rows 0 to 3" in report.decision.reason
    with judge.opened() as store:
        (acceptance,) = store.iter_acceptances(chain.id)
    assert "leaves out" in acceptance.grounds.partial


def test_input_that_comes_back_where_it_was_is_accepted_and_shown_as_partial(judge: Judge, forger: Forger) -> None:
    forger.declare().step(None, 3).declare(source=forger.decoy).step(None, 2, source=forger.decoy)
    chain = forger.declare().step(3, 5).chain

    assert judge.accept(chain).replayed_steps == 3
    assert _ground(judge) == "re-executed (partial: rows 0 to 4 are of 2 earlier queries)"


def test_query_that_is_declared_after_its_data_is_rejected(judge: Judge, forger: Forger) -> None:
    chain = forger.declare(FALSE_QUERY).step(None, 5).declare(QUERY).chain

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-11 query-is-not-late")

    assert "pull again when the query has made a step" in report["reason"]


def test_rows_of_another_query_than_the_newest_are_named_wherever_trust_is_shown(judge: Judge, forger: Forger) -> None:
    chain = forger.declare(FALSE_QUERY).step(None, 4).declare(QUERY).step(4, 5).chain

    report = judge.accept(chain)

    partial = "rows 0 to 5 are of an earlier query"
    assert report.decision.partial == partial
    assert _ground(judge) == f"re-executed (partial: {partial})"
    assert _verify(judge).partial == partial


def test_commands_show_which_query_made_which_rows(judge: Judge, forger: Forger) -> None:
    chain = forger.declare(FALSE_QUERY).step(None, 4).declare(QUERY).step(4, 5).chain
    judge.accept(chain)
    shown = "re-executed (partial: rows 0 to 5 are of an earlier query)"

    def run(*words: str) -> Any:
        code, out, _err = run_here(["--home", str(judge.home.path), *words, "-o", "json"], dict(os.environ), b"")
        assert code == 0
        return json.loads(out)

    (listed,) = run("list", "doubled")
    assert listed["trust"] == shown
    inspected = run("inspect", "trust", "doubled")
    assert (inspected["trust"], inspected["acceptances"][0]["trust"]) == (shown, shown)
    standing = run("trust", "doubled")
    assert (standing["restsOn"], standing["wouldRestOn"]) == (shown, shown)
    query = run("inspect", "query", "doubled")
    made = [(each["block"], each["steps"], each["rows"], each["inputs"][0]["read"]) for each in query["made"]]
    assert made == [(1, 1, [0, 5], [0, 5]), (4, 1, [6, 7], [6, 7])]
    assert query["inputs"][0]["heldRows"] == 9  # the newest row here was never read
    _code, out, _err = run_here(
        ["--home", str(judge.home.path), "log", "doubled", "-o", "oneline"], dict(os.environ), b""
    )
    stated = [line.split("  ")[-1] for line in out.decode().splitlines()]
    assert stated == [
        "by the query of block 4",
        "made rows 6 to 7",
        "by the query of block 1",
        stated[3],
        "made rows 0 to 5",
        stated[5],
    ]
    _code, out, _err = run_here(["--home", str(judge.home.path), "inspect", "query", "doubled"], dict(os.environ), b"")
    text = out.decode()
    assert "block 1, earlier: made rows 0 to 5 of in0 rows 0 to 5" in text
    assert "block 4, in force: made rows 6 to 7 of in0 rows 6 to 7" in text


def test_what_is_signed_about_partial_data_says_so(judge: Judge, forger: Forger) -> None:
    chain = forger.declare(FALSE_QUERY).step(None, 4).declare(QUERY).step(4, 5).chain
    judge.accept(chain)
    with judge.opened() as store:
        publish_finding(_verify(judge), store, judge.keys, now=NOON)
        stated = [decode_statement(item.raw) for item in store.iter_attestations(chain.id)]

    partial = "rows 0 to 5 are of an earlier query"
    (accepted,) = [each for each in stated if isinstance(each, AcceptanceStatement)]
    (verified,) = [each for each in stated if isinstance(each, VerificationStatement)]
    assert (accepted.trust, accepted.partial) == (Trust.REEXECUTED, partial)
    assert (verified.checked.steps, verified.partial) == (2, partial)
    assert describe_attestation(verified.raw).endswith(f"2 of 2 steps re-executed (partial: {partial})")


def test_query_that_eats_the_input_before_the_one_in_force_is_named(judge: Judge, forger: Forger) -> None:
    """No row is of the earlier query: it only made the input's rows disappear."""
    chain = forger.declare(f"{QUERY} WHERE false").step(None, 6).declare(QUERY).step(6, 7).chain

    judge.accept(chain)

    assert _ground(judge) == "re-executed (partial: an earlier query read the inputs first)"


# Checkpoints


def _with_checkpoint(chain: PeerChain, number: int) -> PeerChain:
    content = b"state that nobody made"
    made = Checkpoint(physical_hash=Multihash.of_sha3_256(content), size=len(content))
    changed = chain.replacing(number, lambda event: replace(event, new_checkpoint=made))
    changed.files[made.physical_hash] = content
    return changed


def test_checkpoint_that_no_engine_made_is_rejected(judge: Judge, forger: Forger) -> None:
    chain = forger.declare().step(None, 5).chain
    chain = _with_checkpoint(chain, len(chain.blocks) - 1)

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-7 step-is-reproduced")

    assert report["divergence"]["kind"] == "checkpoint"


def test_checkpoint_of_the_publisher_is_never_given_to_an_engine(judge: Judge, forger: Forger) -> None:
    """Taken once under a weak policy, it stands before the new steps: those that made it are run again first."""
    forger.declare().step(None, 3)
    early = _with_checkpoint(forger.chain, len(forger.chain.blocks) - 1)
    forged = early.blocks[-1].event.new_checkpoint.physical_hash  # type: ignore[union-attr]
    judge.accept(early, policy=Policy.INTEGRITY)
    before = len(forger.chain.blocks)
    forger.step(3, 5)
    chain = early.copy(files={**early.files, **forger.chain.files})
    for block in forger.chain.blocks[before:]:
        chain.add(replace(block.event, prev_checkpoint=forged), at=block.system_time)

    report = judge.reject(chain.proposal(early.head), chain.files, rule="PLAN-7 step-is-reproduced")

    assert report["block"] == before - 1
    assert report["divergence"]["kind"] == "checkpoint"
    assert _verify(judge).problem_block == before - 1


class _RemembersRows:
    """The real engine, with a state beside its rows as an engine of aggregates will have one: how many it has read."""

    def __init__(self, session: Any, folder: Path) -> None:
        self._session = session
        self._path = folder / "made"
        self.given: list[bytes | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def transform(self, request: Any) -> Any:
        before = None if request.prev_checkpoint is None else request.prev_checkpoint.read_bytes()
        self.given.append(before)
        interval = request.inputs[0].offset_interval
        self._path.write_text(f"{int(before or b'0') + interval.row_count}")
        return replace(self._session.transform(request), checkpoint_path=self._path)


@pytest.fixture
def stateful(judge: Judge, forger: Forger, spark_session: Any, tmp_path: Path) -> _RemembersRows:
    """Publisher and judge have an engine that makes checkpoints; what the judge's was given is kept."""
    forger.session = _RemembersRows(spark_session, forger.chain.folder)
    session = _RemembersRows(spark_session, tmp_path)
    judge.engines = SharedEngine(tmp_path / "stateful", judge.home, session)  # type: ignore[arg-type]
    return session


def test_engine_starts_from_the_state_that_it_left_here(judge: Judge, forger: Forger, stateful: _RemembersRows) -> None:
    early = forger.declare().step(None, 2).step(2, 3).chain.copy()
    judge.accept(early)
    chain = forger.step(3, 5).declare(FALSE_QUERY).step(5, 7).chain

    judge.accept(chain, base=early.head)

    # The second query starts from nothing: the state of the first is not its own.
    assert stateful.given == [None, b"2", b"4", None]
    assert _verify(judge).replayed_steps == 4


def test_state_that_was_not_computed_here_is_made_from_the_first_step_of_the_query(
    judge: Judge, forger: Forger, stateful: _RemembersRows
) -> None:
    early = forger.declare(FALSE_QUERY).step(None, 2).declare().step(2, 3).chain.copy()
    judge.accept(early, policy=Policy.INTEGRITY)
    chain = forger.step(3, 5).chain

    report = judge.accept(chain, base=early.head)

    assert stateful.given == [None, b"2"]  # both steps of the query in force, none of the one before
    assert report.replayed_steps == 1  # as many new ones


def test_another_state_than_the_engine_left_is_rejected(judge: Judge, forger: Forger, stateful: _RemembersRows) -> None:
    chain = forger.declare().step(None, 3).chain
    chain = _with_checkpoint(chain, len(chain.blocks) - 1)

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-7 step-is-reproduced")

    assert report["divergence"]["kind"] == "checkpoint"


# Neighbours that held when they were tried


def test_step_that_jumps_over_rows_without_stating_their_offset_is_rejected(judge: Judge, forger: Forger) -> None:
    chain = forger.declare().step(None, 3).step(3, 5).chain
    number = len(chain.blocks) - 1

    def jump(event: ExecuteTransform) -> ExecuteTransform:
        return replace(event, query_inputs=(replace(event.query_inputs[0], new_offset=None),), new_watermark=NOON)

    chain = chain.replacing(number, jump)

    judge.reject(chain.proposal(), chain.files, rule="PLAN-5")


def test_step_without_a_query_is_rejected(judge: Judge, forger: Forger) -> None:
    honest = forger.declare().step(None, 5).chain
    chain = PeerChain(honest.folder, key=NEW_KEY, name="doubled", files=honest.files)
    for block in honest.blocks:
        if not isinstance(block.event, SetTransform):
            chain.add(block.event, at=block.system_time)

    judge.reject(chain.proposal(), chain.files, rule="CHAIN-25")


def test_input_listed_twice_is_rejected(judge: Judge, forger: Forger) -> None:
    declared = select(QUERY, forger.root.id, forger.root.id)
    chain = forger.chain.add(declared)

    judge.reject(chain.proposal(), chain.files, rule="CHAIN-39")


def test_watermark_of_a_derivative_that_was_never_stated_is_rejected(judge: Judge, forger: Forger) -> None:
    chain = forger.declare().step(None, 5).chain
    chain = chain.replacing(len(chain.blocks) - 1, lambda event: replace(event, new_watermark=NOON))

    judge.reject(chain.proposal(), chain.files, rule="PLAN-7")


def test_vocabulary_that_changes_in_the_middle_is_rejected(judge: Judge, forger: Forger) -> None:
    honest = forger.declare().step(None, 3).step(3, 5).chain
    last = len(honest.blocks) - 1
    chain = honest.up_to(last - 1)
    chain.add(SetVocab(event_time_column="doubled"), at=honest.blocks[last].system_time)
    chain.add(honest.blocks[last].event, at=honest.blocks[last].system_time)

    judge.reject(chain.proposal(), chain.files, rule="PLAN-7 query-can-be-repeated")


def test_step_that_claims_to_be_older_than_what_it_read_is_rejected(judge: Judge, forger: Forger) -> None:
    """ "What was known on that day" would show rows before their inputs were known."""
    chain = forger.chain.copy(blocks=[], signatures=[], step_records=[])
    early = Timestamp(NOON.seconds - 90_000)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE), at=early)
    chain.add(select(QUERY, forger.root.id), at=early)
    forger.chain = chain
    forger.step(None, 5, at=Timestamp(NOON.seconds - 80_000))

    judge.reject(chain.proposal(), chain.files, rule="PLAN-14 step-is-not-older-than-what-it-reads")


def test_first_step_that_claims_rows_before_it_is_rejected(judge: Judge, forger: Forger) -> None:
    """CHAIN-18 lets foreign chains do so; nothing that this step gives shows it, and all later rows fit."""
    honest = forger.declare(f"{QUERY} WHERE false").step(None, 6).chain
    chain = honest.replacing(len(honest.blocks) - 1, lambda event: replace(event, prev_offset=99))

    judge.reject(chain.proposal(), chain.files, rule="PLAN-15 step-continues-the-rows-before")


def test_input_that_is_pinned_at_an_old_head_is_shown_to_be(judge: Judge, forger: Forger) -> None:
    """Nobody can prove that a publisher knew more; how far each input was read is said."""
    judge.accept(forger.declare().step(None, 2).chain)

    with judge.opened() as store:
        (span,) = list_queries(store, forger.chain.id)

    assert [(dataset_id, str(rows)) for dataset_id, rows in span.read] == [(forger.root.id, "rows 0 to 1")]


def test_rows_that_are_said_to_be_read_by_no_block_are_rejected(judge: Judge, forger: Forger) -> None:
    chain = forger.declare().step(None, 3).chain

    def without_block(event: ExecuteTransform) -> ExecuteTransform:
        return replace(event, query_inputs=(replace(event.query_inputs[0], new_block_hash=None),))

    chain = chain.replacing(len(chain.blocks) - 1, without_block)

    judge.reject(chain.proposal(), chain.files, rule="CHAIN-29")


def test_schema_that_claims_a_column_the_query_does_not_give_is_rejected(judge: Judge, forger: Forger) -> None:
    chain = forger.declare().step(None, 5).chain
    number = next(b.sequence_number for b in chain.blocks if isinstance(b.event, SetDataSchema))
    schema = chain.blocks[number].event.schema  # type: ignore[union-attr]
    assert schema is not None
    extra = replace(schema, fields=(*schema.fields, replace(schema.fields[-1], name="audited")))
    chain = chain.replacing(number, lambda event: replace(event, schema=extra))
    last = len(chain.blocks) - 1
    data = chain.blocks[last].event.new_data  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(chain.files[data.physical_hash]))
    column = table.column("doubled")
    chain = chain.replacing_slice(last, table.append_column(pa.field("audited", column.type), column))

    report = judge.reject(chain.proposal(), chain.files, rule="PLAN-7")

    assert report["divergence"]["kind"] == "schema"


def test_record_of_trust_survives_the_home(judge: Judge, forger: Forger) -> None:
    """What is partial is read from the stored chain state, not from memory."""
    judge.accept(forger.declare().step(None, 2).chain)
    record = judge.record("doubled")
    assert record is not None
    assert record.trust is Trust.REEXECUTED
    with judge.opened() as store:
        assert load_view(store, record.id).query_checkpoint is None
    assert _ground(judge) == "re-executed"
