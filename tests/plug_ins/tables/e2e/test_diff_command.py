"""``odf-node diff`` on a real home (TABLE-14)."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import odf_node
from support.nodes import RealNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> RealNode:
    node = RealNode(tmp_path_factory.mktemp("diff") / "home")
    with odf_node.open(node.home) as opened:
        prices = opened.create_table("shop.prices", "id BIGINT, price DOUBLE", key=["id"])
        prices.insert(pa.table({"id": [1, 2], "price": [1.0, 2.0]}))
        prices.upsert([{"id": 2, "price": 2.5}, {"id": 3, "price": 3.0}])
        prices.delete(where="id = 1")
    return node


def test_difference_is_counted_and_shown_by_key(node: RealNode) -> None:
    shown = node.must("diff", "shop.prices", "3").out

    lines = shown.splitlines()
    assert lines[0] == "versions 3 and 5 of shop.prices, by id: 1 row added, 1 corrected, 1 retracted"
    assert [line.split()[0] for line in lines if "_" in line or line.startswith(("insert", "delete"))][1:] == [
        "delete",
        "update_preimage",
        "update_postimage",
        "insert",
    ]


def test_without_versions_the_newest_rows_are_compared_with_what_was_there(node: RealNode) -> None:
    shown = node.must("diff", "shop.prices").out

    assert shown.startswith("versions 4 and 5 of shop.prices, by id: 0 rows added, 0 corrected, 1 retracted\n")


def test_program_gets_the_same_as_json(node: RealNode) -> None:
    found = json.loads(node.must("diff", "shop.prices", "5", "3", "--rows", "1", "-o", "json").out)

    assert {name: found[name] for name in ("since", "until", "key", "added", "corrected", "retracted")} == {
        "since": 5, "until": 3, "key": ["id"], "added": 1, "corrected": 1, "retracted": 1,
    }  # fmt: skip
    assert [(each["_change_type"], each["id"]) for each in found["rows"]] == [("insert", 1)]


@pytest.mark.parametrize(
    "words", [("shop.prices", "99"), ("shop.prices", "-1"), ("shop.prices", "x"), ("no.such", "1")]
)
def test_what_is_not_there_is_an_error_of_one_line(node: RealNode, words: tuple[str, ...], tmp_path: Path) -> None:
    done = node.run("diff", *words)

    assert done.code in {2, 3}
    assert "Traceback" not in done.err
