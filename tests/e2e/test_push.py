"""Push between real nodes: the receiver verifies everything, re-execution included, before it accepts."""

from pathlib import Path

import pytest

from support.nodes import Publisher, RealNode, make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    return make_publisher(tmp_path_factory.mktemp("publisher"))


@pytest.fixture
def receiver(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "receiver")


def make_token(receiver: RealNode) -> str:
    return receiver.must("token", "create", "the publisher").out.strip()


def test_corrections_in_the_input_become_corrections_in_the_output(publisher: Publisher) -> None:
    rows = publisher.node.must("tail", "large.cities", "-n", "20", "-o", "json").json()

    changes = [(row["op"], row["city"], row["people"]) for row in rows]
    assert changes[:2] == [(0, "Oslo", 700000), (0, "Rome", 2800000)]
    # Oslo is corrected, Turin is new, and Vaduz grew into the filter: for the reader it is new.
    assert changes[2:] == [(2, "Oslo", 700000), (3, "Oslo", 717710), (0, "Turin", 841600), (0, "Vaduz", 120000)]


def test_push_without_token_is_refused_and_changes_nothing(publisher: Publisher, receiver: RealNode) -> None:
    make_token(receiver)
    with receiver.serving() as address:
        before = receiver.snapshot()
        pushed = publisher.node.run("push", "cities", "--to", f"{address}/cities")

        assert pushed.code == 4
        assert "token" in pushed.err
        assert receiver.snapshot() == before
    assert receiver.must("list", "-o", "json").json() == []


def test_pushed_derivative_is_reexecuted_by_the_receiver(publisher: Publisher, receiver: RealNode) -> None:
    token = make_token(receiver)
    with receiver.serving() as address:
        for name in ("cities", "large.cities"):
            publisher.node.must("push", name, "--to", f"{address}/{name}", "--token", token)
        again = publisher.node.must("push", "cities", "--to", f"{address}/cities", "--token", token, "-o", "json")

    assert again.json()["upToDate"] is True
    rests_on = {row["name"]: row["trust"] for row in receiver.must("list", "-o", "json").json()}
    assert rests_on == {"cities": "signed", "large.cities": "re-executed"}


def test_pushed_derivative_without_its_input_is_refused_with_what_is_missing(
    publisher: Publisher, receiver: RealNode
) -> None:
    token = make_token(receiver)
    with receiver.serving() as address:
        pushed = publisher.node.run("push", "large.cities", "--to", f"{address}/large.cities", "--token", token)

    assert pushed.code == 4
    assert "input 'c'" in pushed.err
    assert receiver.must("list", "-o", "json").json() == []
