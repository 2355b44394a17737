"""A broken contract stops propagation at its edge alone, says why, and heals by itself."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_contracts.keeping import ContractStore
from odf_node.home_folder import HomeFolder
from odf_protocol.errors import RejectedError
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
    (passed,) = contract.list_passes()
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
        ContractStore(HomeFolder(shop.node.home)).get("positive").list_passes()
    assert shop.node.run("pull", "shown").code == 4
