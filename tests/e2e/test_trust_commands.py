"""Trust, evidence and judgement at the command line, against real nodes in real processes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odf_protocol.events import DatasetKind, Seed
from support.nodes import RealNode
from support.offers import Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path)


@contextmanager
def serving(folder: Path, chain: PeerChain) -> Iterator[str]:
    """A publisher of this chain; its address."""
    PublisherHome(Judge.create(folder)).keep(chain)
    with RealNode(folder).serving() as address:
        yield address


def test_publisher_that_equivocates_is_proved_frozen_and_judged_elsewhere(tmp_path: Path, chain: PeerChain) -> None:
    consumer, stranger = RealNode(tmp_path / "consumer"), RealNode(tmp_path / "stranger")
    fork = chain.up_to(2).add_rows([("Atlantis", 1)])
    with serving(tmp_path / "one", chain) as one, serving(tmp_path / "two", fork) as two:
        consumer.must("pull", f"{one}/cities")
        refused = consumer.run("pull", f"{two}/cities")
        again = consumer.run("pull", f"{one}/cities")
    assert (refused.code, again.code) == (4, 4)
    assert "frozen" in refused.err
    assert "odf-node evidence show cities" in refused.err
    assert "frozen" in again.err
    assert "FROZEN" in consumer.must("list").out

    (dispute,) = consumer.must("evidence", "show", "cities", "-o", "json").json()
    assert (dispute["position"], dispute["kept"], [row["block"] for row in dispute["rows"]]) == (3, None, [3])
    assert dispute["shared"]["block"] == 2
    for columns in (80, 120):
        # What is said about the proof is a sentence, which a terminal folds; blocks stay side by side.
        _, *shown = consumer.must("evidence", "show", "cities", environment={"COLUMNS": str(columns)}).out.splitlines()
        assert max(map(len, shown)) <= columns
        (side_by_side,) = [line for line in shown if dispute["rows"][0]["first"].split()[0] in line]
        assert dispute["rows"][0]["second"].split()[0] in side_by_side
        (shared,) = [line for line in shown if dispute["shared"]["is"] in line]
        assert shared.startswith("  shared up to block 2: ")
    assert "\n  WARNING     it is frozen: " in consumer.must("inspect", "trust", "cities").out
    bundle = tmp_path / "bundle.json"
    reported = consumer.must("evidence", "show", "cities").err
    assert "next: odf-node evidence export cities --to evidence.json" in reported
    consumer.must("evidence", "export", "cities", "--to", str(bundle))
    judged = stranger.run("judge", str(bundle), "-o", "json")
    assert judged.code == 4
    assert [each["dataset"] for each in judged.json()["guilty"]] == [str(chain.id)]
    assert not stranger.home.exists()


def test_derivative_at_an_address_says_how_its_inputs_come_to_be_verified_with_it(
    tmp_path: Path, chain: PeerChain
) -> None:
    """VERIFY-6: whatever this node's own datasets are, the address is verified apart from them."""
    auditor = RealNode(tmp_path / "auditor")
    derivative = PeerChain(tmp_path, name="large", key=NEW_KEY)
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    derivative.add(select("SELECT * FROM in0", chain.id))
    PublisherHome(Judge.create(tmp_path / "publisher")).keep(chain)
    with serving(tmp_path / "publisher", derivative) as address:
        auditor.must("pull", f"{address}/cities")
        alone = auditor.must("verify", f"{address}/large").out
        assert "is not in this node; what is at an address is verified apart" in alone
        assert "--recursive brings its inputs, too" in alone
        assert "not re-executed" not in auditor.must("verify", "--recursive", f"{address}/large").out


def test_consumer_whose_policy_is_two_auditors_takes_what_both_verified(tmp_path: Path, chain: PeerChain) -> None:
    auditors = [RealNode(tmp_path / name) for name in ("alice", "bob")]
    consumer = RealNode(tmp_path / "consumer")
    consumer.must("list")
    publisher = tmp_path / "publisher"
    with serving(publisher, chain) as address:
        keys = []
        for auditor in auditors:
            auditor.must("pull", f"{address}/cities")
            auditor.must("verify", "cities", "--attest")
            (statement,) = [
                each
                for each in auditor.must("trust", "cities", "-o", "json").json()["statements"]
                if each["says"].startswith("valid")
            ]
            keys.append(statement["key"])
        consumer.home.mkdir()
        (consumer.home / "policies.yaml").write_text(
            "kind: AcceptPolicies\nversion: 1\n"
            f"auditors: {{alice: {json.dumps(keys[0])}, bob: {json.dumps(keys[1])}}}\n"
            "default: {accept: attested, threshold: 2}\n"
        )
        alone = consumer.run("pull", f"{address}/cities")
        assert (alone.code, "not by alice, bob" in alone.err) == (4, True)
        with auditors[0].serving() as alice:
            auditors[1].must("pull", f"{alice}/cities")
        with auditors[1].serving() as both:
            consumer.must("pull", f"{both}/cities")
    shown = consumer.must("trust", "cities", "-o", "json").json()
    assert (shown["restsOn"], [each["name"] for each in shown["acceptances"][0]["auditors"]]) == (
        "attested",
        ["alice", "bob"],
    )
    other = tmp_path / "other.yaml"
    other.write_text(
        (consumer.home / "policies.yaml").read_text().replace("accept: attested, threshold: 2", "accept: integrity")
    )
    (change,) = consumer.must("trust", "--with", str(other), "-o", "json").json()
    assert (change["now"]["wouldRestOn"], change["then"]["wouldRestOn"]) == ("attested", "signed")
    assert consumer.must("trust", "alice", "-o", "json").json()["withoutIt"][0]["dataset"] == "cities"


def test_mistake_in_the_policies_is_answered_with_its_place(tmp_path: Path, chain: PeerChain) -> None:
    consumer = RealNode(tmp_path / "consumer")
    consumer.home.mkdir()
    (consumer.home / "policies.yaml").write_text("kind: AcceptPolicies\nversion: 1\ndefault: {acept: integrity}\n")
    with serving(tmp_path / "publisher", chain) as address:
        ran = consumer.run("pull", f"{address}/cities")
    assert ran.code == 7
    assert "policies.yaml:3:11" in ran.err
    assert "did you mean 'accept'" in ran.err


def test_slices_that_differ_are_located(tmp_path: Path, chain: PeerChain) -> None:
    name = chain.blocks[2].event.new_data.physical_hash  # type: ignore[union-attr]
    mine = tmp_path / "mine.parquet"
    mine.write_bytes(chain.replacing_slice(2, _changed(chain)).files[_last_added(chain)])
    with serving(tmp_path / "publisher", chain) as address:
        ran = RealNode(tmp_path / "reader").run(
            "locate", str(mine), f"{address}/cities", "--slice", str(name), "-o", "json"
        )
    assert ran.code == 4
    assert [row["column"] for row in ran.json()["differences"]] == ["people"]


def _changed(chain: PeerChain):  # type: ignore[no-untyped-def]
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = chain.blocks[2].event.new_data.physical_hash  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(chain.files[name]))
    index = table.schema.get_field_index("people")
    return table.set_column(index, table.schema.field(index), pa.array([1, 2, 3]))


def _last_added(chain: PeerChain):  # type: ignore[no-untyped-def]
    changed = chain.replacing_slice(2, _changed(chain))
    return changed.blocks[2].event.new_data.physical_hash  # type: ignore[union-attr]
