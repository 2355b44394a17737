"""A broken contract stops propagation at its edge alone, says why, and heals by itself."""

import base64
import json
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from odf_contracts.keeping import ContractStore
from odf_fingerprints.documents import NO_ROWS
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint, KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.signing import sign_fingerprint
from odf_node.composition import open_node
from odf_node.home_folder import HomeFolder
from odf_protocol.block import decode_block
from odf_protocol.errors import RejectedError
from odf_protocol.signatures import Purpose, SignedDocument, sign_document
from support.nodes import RealNode

ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: prices
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "${{ env.PRICES }}"}
      read: {kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, id BIGINT, price BIGINT]}
      merge: {kind: Snapshot, primaryKey: [id]}
"""
DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: INPUT, alias: p}]
      transform: {kind: Sql, engine: datafusion, query: 'SELECT event_time, id, price FROM p'}
"""
CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: prices-are-positive
version: 1.0.0
schema:
  - name: prices
    properties:
      - name: price
        logicalType: integer
        quality:
          - type: sql
            query: SELECT count(*) FROM {object} WHERE {property} <= 0
            mustBe: 0
            description: prices of 0 or less
"""
KEPT_ROWS = """\
apiVersion: v3.1.0
kind: DataContract
id: prices-stay
version: 1.0.0
schema:
  - name: prices
    quality:
      - type: custom
        engine: odf-node
        implementation: {metric: rowsOfPrevious, mustBeGreaterOrEqualTo: 90}
"""
STEADY = """\
apiVersion: v3.1.0
kind: DataContract
id: prices-are-steady
version: 1.0.0
schema:
  - name: prices
    properties:
      - name: price
        quality:
          - type: custom
            engine: odf-node
            implementation: {metric: drift, measure: psi, mustBeLessThan: 0.25}
"""


@dataclass
class Shop:
    node: RealNode
    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PRICES": f"file://{self.folder}/prices.csv"}

    def publish(self, prices: Mapping[int, int]) -> None:
        lines = [f"2024-01-01T00:00:00Z,{key},{price}" for key, price in prices.items()]
        (self.folder / "prices.csv").write_text("\n".join(["event_time,id,price", *lines]) + "\n")
        self.node.must("pull", "prices", environment=self.environment)

    def pull(self, name: str = "shown") -> str:
        return self.node.must("pull", name).out

    def derive(self, name: str, source: str = "prices") -> None:
        manifest = self.folder / f"{name}.yaml"
        manifest.write_text(DERIVATIVE.replace("NAME", name).replace("INPUT", source))
        self.node.must("add", str(manifest))

    def contract(self, *words: str, text: str = CONTRACT) -> None:
        (self.folder / "positive.odcs.yaml").write_text(text)
        self.node.must("contract", "add", str(self.folder / "positive.odcs.yaml"), *words)

    def rows(self, name: str = "shown") -> list[tuple[int, int]]:
        asked = self.node.must("sql", "-c", f"SELECT id, price FROM {name} ORDER BY id, price", "-o", "json").json()
        return [(each["id"], each["price"]) for each in asked]

    def held(self) -> dict[str, list[str]]:
        return {each["name"]: each["holds"] for each in self.node.must("list", "-o", "json").json() if each["holds"]}

    def status(self) -> list[tuple[str, str, str]]:
        found = self.node.must("status", "-o", "json").json()
        return [(each["dataset"], each["what"], each["command"]) for each in found]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = Shop(RealNode(tmp_path / "home", has_engine=True), tmp_path)
    (tmp_path / "root.yaml").write_text(ROOT)
    found.node.must("add", str(tmp_path / "root.yaml"))
    return found


def test_derivative_keeps_the_last_good_version_and_heals_by_itself(shop: Shop) -> None:
    """CONTRACT-8, CONTRACT-9, CONTRACT-10, PLAN-21: what is derived from it follows, and the input stays as it is."""
    shop.publish({1: 10})
    shop.derive("shown")
    shop.derive("further", "shown")
    shop.contract()
    shop.pull()
    shop.publish({1: -10})
    said = shop.pull()
    assert "shown: up to date" in said
    reason = "block 4 breaks contract positive: prices of 0 or less: 1, allowed is exactly 0"
    assert f"keeps to block 3 of prices: {reason}" in said
    shop.pull("further")
    assert shop.rows() == shop.rows("further") == [(1, 10)]
    assert shop.held() == {"shown": ["prices"]}
    assert ("shown", f"keeps to block 3 of prices: {reason}", "odf-node contract explain positive") in shop.status()
    assert "KEEPS THE LAST GOOD VERSION OF" in shop.node.must("list").out
    assert shop.node.must("sql", "-c", "SELECT price FROM prices__state", "-o", "json").json() == [{"price": -10}]
    plan = shop.node.must("inspect", "plan", "shown", "-o", "json").json()[0]
    assert not plan["isDue"]

    shop.publish({1: -10, 2: 5})
    shop.pull()
    assert shop.rows() == [(1, 10)]
    assert "block 5 breaks" in str(shop.status())

    shop.publish({1: 12, 2: 5})
    assert "was not judged yet" in str(shop.status())
    said = shop.pull()
    assert "keeps to" not in said
    assert (2, 5) in shop.rows()
    assert (1, 12) in shop.rows()
    assert shop.held() == {}
    shop.pull("further")
    assert shop.rows("further") == shop.rows()


def test_first_version_that_is_bad_lets_nothing_be_derived(shop: Shop) -> None:
    """PLAN-21."""
    shop.publish({1: 0})
    shop.derive("shown")
    shop.contract()
    assert "takes nothing of prices" in shop.pull()
    assert shop.node.must("list", "shown", "-o", "json").json()[0]["blocks"] == 2
    shop.publish({1: 3})
    shop.pull()
    assert (1, 3) in shop.rows()


def test_action_block_fails_the_pull_after_what_may_be_read(shop: Shop) -> None:
    """CONTRACT-9."""
    shop.derive("shown")
    shop.contract("--action", "block")
    shop.publish({1: 10})
    shop.publish({1: -10})
    failed = shop.node.run("pull", "shown")
    assert failed.code == 4
    assert "block 4 breaks contract positive" in failed.err
    assert shop.rows() == [(1, 10)]


def test_action_of_the_file_warns_and_holds_nothing(shop: Shop) -> None:
    """CONTRACT-9: the file says what is done, where the command does not."""
    shop.derive("shown")
    shop.contract(text=CONTRACT + "customProperties: [{property: odf-node.action, value: warn}]\n")
    shop.publish({1: -10})
    shop.pull()
    assert shop.rows() == [(1, -10)]
    (found,) = [each for each in shop.status() if "breaks contract" in each[1]]
    assert found[0] == "prices"
    assert "which warns: prices of 0 or less: 1" in found[1]


def test_contract_of_one_derivative_holds_nothing_back_from_others(shop: Shop) -> None:
    """CONTRACT-7: the edge is that of the consumer."""
    shop.derive("shown")
    shop.derive("other")
    shop.contract("--for", "shown")
    shop.publish({1: -10})
    shop.pull("other")
    assert shop.rows("other") == [(1, -10)]
    assert "takes nothing of prices" in shop.pull()
    assert shop.node.run("contract", "add", str(shop.folder / "positive.odcs.yaml"), "--for", "prices").code == 2
    shop.node.must("contract", "remove", "positive")
    shop.pull()
    assert shop.rows() == [(1, -10)]


def test_version_is_let_pass_with_a_signed_reason(shop: Shop) -> None:
    """CONTRACT-11: for this text of the contract alone."""
    shop.derive("shown")
    shop.contract()
    shop.publish({1: -10})
    shop.pull()
    assert shop.node.run("contract", "pass", "positive", "3", "--reason", " ").code == 2
    assert shop.node.run("contract", "pass", "positive", "2", "--reason", "no rows").code == 2
    shop.node.must("contract", "pass", "positive", "3", "--reason", "a deposit is paid back")
    shop.pull()
    assert shop.rows() == [(1, -10)]
    contract = ContractStore(HomeFolder(shop.node.home)).get("positive")
    (passed,) = contract.list_passes(
        SignedDocument.decode(contract.passes[0], Purpose.WAIVER, max_payload_bytes=9_999).signer
    )
    assert (passed.version, passed.reason) == (3, "a deposit is paid back")
    assert "a deposit is paid back" in shop.node.must("inspect", "audit").out
    shop.contract(text=CONTRACT.replace("<= 0", "< -5"))
    checked = shop.node.run("contract", "check", "positive", "-o", "json")
    assert checked.code == 4
    assert [each["standing"] for each in checked.json()] == ["broken"]


def test_forged_pass_is_rejected(shop: Shop) -> None:
    """CONTRACT-11: what stands in the file is believed only with its signature."""
    shop.derive("shown")
    shop.contract()
    shop.publish({1: -10})
    shop.node.must("contract", "pass", "positive", "3", "--reason", "honest")
    path = shop.node.home / "contracts" / "positive.json"
    kept = json.loads(path.read_text())
    raw = bytearray(base64.b64decode(kept["passes"][0]))
    raw[-20] ^= 1
    kept["passes"] = [base64.b64encode(bytes(raw)).decode()]
    path.write_text(json.dumps(kept))
    with pytest.raises(RejectedError):
        ContractStore(HomeFolder(shop.node.home)).get("positive").list_passes(None)
    assert shop.node.run("pull", "shown").code == 4


def test_pass_of_another_key_is_rejected(shop: Shop) -> None:
    """CONTRACT-11: a good signature that is not this node's says nothing here."""
    shop.derive("shown")
    shop.contract()
    shop.publish({1: -10})
    shop.node.must("contract", "pass", "positive", "3", "--reason", "honest")
    path = shop.node.home / "contracts" / "positive.json"
    kept = json.loads(path.read_text())
    payload = base64.b64decode(kept["passes"][0])[96:]
    kept["passes"] = [base64.b64encode(sign_document(bytes(32), Purpose.WAIVER, payload).to_bytes()).decode()]
    path.write_text(json.dumps(kept))
    failed = shop.node.run("pull", "shown")
    assert failed.code == 4
    assert "CONTRACT-11 passes-are-of-this-node" in failed.err


def test_version_on_which_a_derivative_stands_is_what_later_ones_are_compared_with(shop: Shop) -> None:
    """CONTRACT-8: also where it was taken before the contract was added."""
    shop.publish(dict.fromkeys(range(10), 1))
    shop.derive("shown")
    shop.pull()
    shop.contract(text=KEPT_ROWS)
    shop.publish(dict.fromkeys(range(5), 1))
    assert "keeps to block 3 of prices" in shop.pull()
    shop.publish(dict.fromkeys(range(6), 1))
    assert "rows against the version before: 60 %" in shop.pull()
    assert len(shop.rows()) == 10


def test_findings_follow_the_version_that_is_compared_with(shop: Shop) -> None:
    """CONTRACT-8, CONTRACT-11: a version that was let pass is compared with from then on, at its own edge alone."""
    shop.publish(dict.fromkeys(range(10), 1))
    shop.derive("shown")
    shop.derive("other")
    shop.contract("--for", "shown", text=KEPT_ROWS)
    file = shop.folder / "positive.odcs.yaml"
    shop.node.must("contract", "add", str(file), "--for", "other", "--name", "second")
    shop.pull()
    shop.pull("other")
    shop.publish(dict.fromkeys(range(5), 1))
    shop.publish(dict.fromkeys(range(6), 1))
    assert "keeps to block 3" in shop.pull()
    shop.node.must("contract", "pass", "positive", "4", "--reason", "half of the shop was sold")
    assert shop.node.run("contract", "check", str(file)).code == 4
    assert "keeps to" not in shop.pull()
    assert "keeps to block 3" in shop.pull("other")
    assert shop.held() == {"other": ["prices"]}


def test_column_that_drifts_is_held_without_fingerprints_at_hand_whatever_others_state(shop: Shop) -> None:
    """CONTRACT-5: fingerprints are computed where they are missing, and those of other nodes are not believed."""
    prices = {key: 100 + key for key in range(200)}
    shop.publish(prices)
    shop.derive("shown")
    shop.contract(text=STEADY)
    shop.pull()
    shop.publish(prices | {200: 150, 201: 250})
    assert "keeps to" not in shop.pull()
    shop.publish({key: price + 100_000 for key, price in prices.items()})
    node = open_node(shop.node.home)
    with closing(node):
        home = node.home
        (record,) = [each for each in home.store.list_datasets() if each.name == "prices"]
        seed = bytes(range(32))
        stated: list[KeptFingerprint] = []
        with FingerprintMaker(home) as maker:
            for stored in home.store.iter_blocks_with_rows(record.id):
                found = maker.compute(record, stored.hash, decode_block(stored.raw, expected_hash=stored.hash))
                kept = found if not stated else msgspec.structs.replace(found, added=NO_ROWS, removed=NO_ROWS)
                document = sign_fingerprint(seed, kept)
                stated.append(KeptFingerprint(found.sequence, stored.hash, FingerprintOrigin.PEER, document))
        KeptFingerprints(home.folder).forget(record.id)
        KeptFingerprints(home.folder).put(record.id, stated)
    assert "breaks contract positive: drift of price (psi)" in shop.pull()


def test_drift_that_cannot_be_measured_now_is_measured_the_next_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONTRACT-8: the version is held meanwhile, and not for good."""
    prices = {key: 100 + key for key in range(200)}
    shop.publish(prices)
    shop.derive("shown")
    shop.contract(text=STEADY)
    shop.pull()
    shop.publish(prices | {200: 150})
    with monkeypatch.context() as lacking:
        lacking.setitem(sys.modules, "odf_fingerprints", None)
        said = shop.pull()
    assert "cannot be judged: drift is measured of fingerprints, and the plug-in odf_fingerprints is not inst" in said
    assert "keeps to" not in shop.pull()
    assert (200, 150) in shop.rows()
