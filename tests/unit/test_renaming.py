"""Another local name: identity, subscription and policies of a dataset after it."""

from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.datasets.naming import Renaming
from odf_node.errors import UsageError
from odf_node.records.datasets import Subscription
from odf_node.records.errors import NameTakenError
from odf_protocol.errors import MalformedError
from support.offers import NOW, Judge, PublisherHome, root_chain
from support.signing import OTHER_KEY
from support.stores import find_named

POLICIES = """\
kind: AcceptPolicies
version: 1
rules:
  - datasets: ["secret.%"]
    accept: unsigned
"""


def renaming(node: Node) -> Renaming:
    return Renaming(node.store, node.read_policies())


def names(node: Node) -> list[str]:
    return [record.name for record in node.store.list_datasets()]


def test_renamed_dataset_keeps_all_but_its_name(node: Node, judge: Judge, tmp_path: Path) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))
    node.store.put_subscription(Subscription(dataset_id=record.id, name=record.name, url=None, since=NOW))

    renamed = renaming(node).rename(record, "world.Cities")

    (after,) = node.store.list_datasets()
    assert (after.id, after.head, after.name) == (record.id, record.head, "world.Cities")
    assert (renamed.before, renamed.name) == (record, "world.Cities")
    assert [each.name for each in node.store.list_subscriptions()] == ["world.Cities"]
    assert find_named(node.store, record.name) is None


def test_name_of_another_dataset_is_rejected_whatever_its_case(node: Node, judge: Judge, tmp_path: Path) -> None:
    home = PublisherHome(judge)
    one, other = home.keep(root_chain(tmp_path)), home.keep(root_chain(tmp_path, key=OTHER_KEY, name="towns"))
    for taken in ("towns", "TOWNS"):
        with pytest.raises(NameTakenError, match=str(other.id)):
            renaming(node).rename(one, taken)
    assert names(node) == ["cities", "towns"]


def test_case_of_the_own_name_can_be_changed(node: Node, judge: Judge, tmp_path: Path) -> None:
    renaming(node).rename(PublisherHome(judge).keep(root_chain(tmp_path)), "Cities")
    assert names(node) == ["Cities"]


def test_name_that_it_has_already_is_no_new_one(node: Node, judge: Judge, tmp_path: Path) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))
    with pytest.raises(UsageError, match="is its name already"):
        renaming(node).rename(record, "cities")
    assert list(node.store.iter_audit(limit=9)) == []


@pytest.mark.parametrize("name", ["", "_odf", "a b", "a/b", "a%", "../a"])
def test_what_is_no_name_is_rejected(node: Node, judge: Judge, tmp_path: Path, name: str) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))
    with pytest.raises(MalformedError):
        renaming(node).rename(record, name)
    assert names(node) == ["cities"]


def test_rule_that_matches_the_new_name_is_told(
    node: Node, judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.accept(root_chain(tmp_path))
    judge.home.policies.write_text(POLICIES)

    assert main(["--home", str(judge.home.path), "mv", "cities", "secret.cities"]) == 0

    shown = capsys.readouterr()
    assert shown.out == "renamed cities to secret.cities\n"
    assert "accepted by rule 1 of policies.yaml (line 4) now; it was the built-in default" in shown.err
    (entry,) = [each for each in node.store.iter_audit(limit=10) if each.command == "rename"]
    assert (entry.subject, entry.detail.split(";")[0]) == ("secret.cities", "was cities")
