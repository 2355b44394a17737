"""Push between real nodes: the receiver verifies everything, re-execution included, before it accepts."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from support.nodes import Publisher, RanCommand, RealNode, make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800), pytest.mark.usefixtures("light_engines")]


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    return make_publisher(tmp_path_factory.mktemp("publisher"))


@dataclass(frozen=True)
class Receiver:
    """A node whose daemon runs, where it answers, and a token of its."""

    node: RealNode
    address: str
    token: str


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    node = RealNode(tmp_path_factory.mktemp("receiving") / "receiver")
    token = node.must("token", "create", "the publisher").out.strip()
    with node.serving() as address:
        yield Receiver(node, address, token)


def test_corrections_in_the_input_become_corrections_in_the_output(publisher: Publisher) -> None:
    rows = publisher.node.must("tail", "large.cities", "-n", "20", "-o", "json").json()

    changes = [(row["op"], row["city"], row["people"]) for row in rows]
    assert changes[:2] == [(0, "Oslo", 700000), (0, "Rome", 2800000)]
    # Oslo is corrected, Turin is new, and Vaduz grew into the filter: for the reader it is new.
    assert changes[2:] == [(2, "Oslo", 700000), (3, "Oslo", 717710), (0, "Turin", 841600), (0, "Vaduz", 120000)]


def test_push_without_token_is_rejected_and_changes_nothing(publisher: Publisher, receiver: Receiver) -> None:
    before, listed = receiver.node.snapshot(), receiver.node.must("list", "-o", "json").json()
    pushed = publisher.node.run("push", "cities", "--to", f"{receiver.address}/cities")

    assert pushed.code == 4
    assert "token" in pushed.err
    assert receiver.node.snapshot() == before
    assert receiver.node.must("list", "-o", "json").json() == listed


def test_pushed_derivative_is_rejected_without_its_input_and_reexecuted_with_it(
    publisher: Publisher, receiver: Receiver
) -> None:
    def push(name: str) -> RanCommand:
        words = ("--to", f"{receiver.address}/{name}", "--token", receiver.token, "-o", "json")
        return publisher.node.run("push", name, *words)

    missing = push("large.cities")
    assert missing.code == 4
    assert "input 'c'" in missing.err
    assert receiver.node.must("list", "-o", "json").json() == []

    assert [push(name).code for name in ("cities", "large.cities")] == [0, 0]
    assert push("cities").json()["upToDate"] is True
    rests_on = {row["name"]: row["trust"] for row in receiver.node.must("list", "-o", "json").json()}
    assert rests_on == {"cities": "signed", "large.cities": "re-executed"}
