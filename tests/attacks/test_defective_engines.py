"""An engine with a defect that takes back what it never gave, the same one wherever the dataset goes.

A publisher's node writes none of it; where another one did, re-execution agrees, and the changelog itself tells.
Source: ROWS-12 to ROWS-14.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import TransformRequest, TransformResponse
from odf_engines.engine import EngineSession
from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.datasets.changelogs import Changelogs
from odf_node.errors import UnsoundResultError
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.records.access import ReadGrants
from odf_node.trust.auditing import publish_finding
from odf_node.trust.verifying import Verifier
from odf_protocol.events import AddPushSource, DatasetKind, MergeStrategyChangelogStream, ReadStepNdJson, Seed
from odf_protocol.policy import Policy, Trust
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import decode_verification
from support.homes import make_home
from support.honest_derivatives import NamedEngines
from support.offers import CITIES, NOON, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY

RULE = "ROWS-12"
QUERY = "SELECT op, event_time, city, people FROM in0"


class DefectiveEngines(NamedEngines):
    """Real engines, whose steps take back another value than they gave."""

    def own_session(self, name: str) -> EngineSession:
        return DefectiveSession(super().own_session(name))  # type: ignore[return-value]


class DefectiveSession:
    def __init__(self, session: EngineSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def transform(self, request: TransformRequest) -> TransformResponse:
        response = self._session.transform(request)
        if response.data_path is None:
            return response
        table = pq.read_table(response.data_path)
        takes = pc.is_in(table.column("op"), pa.array([1, 2], pa.int32()))
        place = table.schema.get_field_index("people")
        wrong = pc.if_else(takes, pc.add(table.column("people"), 1), table.column("people"))
        changed = response.data_path.with_name("changed.parquet")
        pq.write_table(table.set_column(place, table.schema.field(place), wrong), changed)
        return replace(response, data_path=changed, logical_hash=None)


def judge_of(folder: Path) -> Judge:
    judge = Judge.create(folder)
    judge.engines = DefectiveEngines(folder.with_suffix(".engines"), judge.home)
    return judge


def make_derivative(folder: Path) -> tuple[PeerChain, PeerChain, PublisherHome]:
    """A root with a retraction, and over it a derivative with a step before that."""
    home = PublisherHome(judge_of(folder / "publisher"))
    root = root_chain(folder, slices=0, name="root")
    root.add_rows(CITIES, event_time=[NOON.unix_ms] * len(CITIES))
    derivative = PeerChain(folder, key=NEW_KEY, name="derived")
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    derivative.add(select(QUERY, root.id, engine="datafusion"))
    home.keep(root)
    home.keep(derivative)
    home.run(derivative, at=Timestamp(NOON.seconds + 100))
    root.add_rows([CITIES[0], ("Lima", 1)], op=[1, 0], event_time=[NOON.unix_ms] * 2)
    home.keep(root)
    return root, derivative, home


def test_publisher_writes_nothing_and_is_told_the_row(tmp_path: Path) -> None:
    _, derivative, home = make_derivative(tmp_path)
    before = home.judge.snapshot()

    with pytest.raises(UnsoundResultError, match=r"offset 3, which takes back .*city 'Oslo', people '717711'"):
        home.run(derivative, at=Timestamp(NOON.seconds + 200))

    assert home.judge.snapshot() == before


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[PeerChain, PeerChain]:
    """What a node without the rule wrote."""
    root, derivative, home = make_derivative(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Changelogs, "require_sound", lambda *_args, **_named: "")
        home.run(derivative, at=Timestamp(NOON.seconds + 200))
    return root, derivative


@pytest.mark.parametrize("policy", [None, Policy.REEXECUTE, Policy.INTEGRITY])
def test_chain_that_re_execution_agrees_with_is_rejected(
    tmp_path: Path, published: tuple[PeerChain, PeerChain], policy: Policy | None
) -> None:
    root, derivative = published
    judge = judge_of(tmp_path / "home")
    judge.accept(root)
    number = derivative.blocks[-1].sequence_number

    report = judge.reject(derivative.proposal(), derivative.files, rule=RULE, policy=policy)

    assert report["block"] == number
    assert "offset 3, which takes back" in report["found"]
    # The steps before are sound, and are taken.
    early = derivative.up_to(number - 1)
    judge.accept(early)
    record = judge.record("derived")
    assert record is not None
    assert record.trust is Trust.REEXECUTED
    judge.reject(derivative.proposal(early.head), derivative.files, rule=RULE, policy=policy)


def test_honest_engine_names_the_cell_that_differs(tmp_path: Path, published: tuple[PeerChain, PeerChain]) -> None:
    root, derivative = published
    judge = Judge.create(tmp_path / "home")
    judge.engines = NamedEngines(tmp_path / "home.engines", judge.home)
    judge.accept(root)

    report = judge.reject(derivative.proposal(), derivative.files, rule="PLAN-7")

    assert report["divergence"]["columns"] == ["people"]


def test_auditor_signs_what_is_unsound(
    tmp_path: Path, published: tuple[PeerChain, PeerChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, derivative = published
    judge = judge_of(tmp_path / "home")
    judge.accept(root)
    with monkeypatch.context() as patch:
        patch.setattr(Changelogs, "find_unsound", lambda *_args, **_named: [])
        judge.accept(derivative)
    record = judge.record("derived")
    assert record is not None

    with judge.opened() as store:
        finding = Verifier(make_home(judge.home, store), judge.engines).verify(
            record, on_progress=Silence().on_progress
        )
    assert (finding.problem_block, finding.is_damage) == (derivative.blocks[-1].sequence_number, False)
    node = Node(HomeFolder(judge.home.path), FixedClock(NOON))
    try:
        raw = publish_finding(finding, node.store, node.keys, now=NOON)
    finally:
        node.close()
    assert raw is not None
    stated = decode_verification(raw)
    assert (stated.verdict.value, stated.problem.rule.split()[0]) == ("divergence", RULE)  # type: ignore[union-attr]


def test_step_over_an_input_that_breaks_the_rule_itself_is_taken_and_said(tmp_path: Path) -> None:
    """What a query hands on of a stream of changes; the same of a sound input is rejected above."""
    home = PublisherHome(judge_of(tmp_path / "publisher"))
    home.judge.engines = NamedEngines(tmp_path / "engines", home.judge.home)
    root = root_chain(tmp_path, slices=0, name="root")
    merge = MergeStrategyChangelogStream(primary_key=("city",))
    root.add(AddPushSource(source_name="default", read=ReadStepNdJson(), merge=merge))
    root.add_rows([CITIES[0], CITIES[1]], op=[0, 1], event_time=[NOON.unix_ms] * 2)
    derivative = PeerChain(tmp_path, key=NEW_KEY, name="derived")
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    derivative.add(select(QUERY, root.id, engine="datafusion"))
    home.keep(root)
    home.keep(derivative)
    home.run(derivative, at=Timestamp(NOON.seconds + 100))
    judge = Judge.create(tmp_path / "home")
    judge.engines = NamedEngines(tmp_path / "home.engines", judge.home)
    judge.accept(root)

    report = judge.accept(derivative)

    (stated,) = report.warnings
    assert stated.startswith("takes back 1 row too many, from block ")
    assert report.decision.reason.endswith(stated)
    # An input that is hidden from whoever offers the chain is no excuse, and so is found out by nobody.
    hidden = Judge.create(tmp_path / "hidden")
    hidden.accept(root)
    proposal = derivative.proposal(reads=ReadGrants(published=False))
    hidden.reject(proposal, derivative.files, rule=RULE, policy=Policy.INTEGRITY)
    # Who does not hold the input cannot find that out.
    other = Judge.create(tmp_path / "other")
    other.reject(derivative.proposal(), derivative.files, rule=RULE, policy=Policy.INTEGRITY)
