"""How much of a dataset is taken: what ``pull`` brings from real daemons, says and leaves, subset after subset."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.daemons import daemon
from support.nodes import RealNode
from support.offers import Judge, PeerChain, PublisherHome, root_chain


@dataclass(frozen=True)
class Places:
    """A daemon with a dataset of two slices, and one that has the dataset without the first of them."""

    chain: PeerChain
    whole: str
    partial: str

    @property
    def total_bytes(self) -> int:
        """Of both slices."""
        return sum(map(len, self.chain.files.values()))

    @property
    def first_bytes(self) -> int:
        """Of the slice that one place lacks."""
        return len(next(iter(self.chain.files.values())))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("places")
    chain = root_chain(folder)
    publisher = PublisherHome(Judge.create(folder / "whole"))
    publisher.keep(chain)
    other = RealNode(folder / "partial")
    with daemon(publisher.judge.home.path) as whole:
        other.must("pull", f"{whole.url}/cities", "--metadata-only")
        other.must("tail", "cities", "-n", "1")
        with daemon(other.home) as partial:
            yield Places(chain, f"{whole.url}/cities", f"{partial.url}/cities")


def stand(node: RealNode) -> dict[str, Any]:
    (row,) = node.must("list", "-o", "json").json()
    return {key: row[key] for key in ("trust", "absentFiles", "notChecked")}


def test_files_whose_rows_come_later_and_then_the_rows(places: Places, tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")

    first = node.must("pull", places.whole, "--rows-later").out.splitlines()
    assert first[0].startswith(
        f"cities: took 4 new blocks and 2 files ({places.total_bytes:,} bytes), said to have 6 rows"
    )
    assert "chain and files hold" in first[0]
    assert first[-1].startswith("cities: taken unchecked: rows; 'odf-node pull cities' checks them now")
    assert stand(node) == {"trust": "metadata-only", "absentFiles": 0, "notChecked": ["rows"]}
    assert node.must("pull", "cities", "--rows-later").out.splitlines() == ["cities: up to date", first[-1]]
    shown = node.must("inspect", "trust", "cities").out
    assert "unchecked   rows when it was taken; 'odf-node pull cities' checks them" in shown
    assert shown.count("chain and files hold") == 2  # one acceptance, one statement
    assert "not here" not in shown
    assert "files" not in node.must("trust", "cities").out.replace("chain and files hold", "")

    (rows,) = node.must("pull", "cities").out.splitlines()
    assert rows.startswith("cities: checked 6 rows of 4 blocks taken unchecked; root data")
    assert stand(node) == {"trust": "signed", "absentFiles": 0, "notChecked": []}
    assert node.must("pull", "cities").out == "cities: up to date\n"
    assert node.must("pull", "cities", "--rows-later").out == "cities: up to date\n"


def test_metadata_then_files_then_rows(places: Places, tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    total = places.total_bytes

    first = node.must("pull", places.whole, "--metadata-only").out.splitlines()
    took = f"took 4 new blocks without the 2 files ({total:,} bytes) that they name, said to have 6 rows"
    assert first[0].startswith(f"cities: {took}; the chain")
    assert first[-1].startswith("cities: taken unchecked: files, rows; 'odf-node pull cities' brings and checks them")
    assert stand(node) == {"trust": "metadata-only", "absentFiles": 2, "notChecked": ["files", "rows"]}

    (files,) = node.must("pull", "cities", "--rows-later", "-o", "json").json()
    assert (files["newBlocks"], files["completedBlocks"], files["portion"]) == (0, 4, "rows-later")
    assert files["completedFiles"] == {"files": 2, "bytes": total, "fetchedFiles": 2, "fetchedBytes": total}
    assert (files["upToDate"], files["trust"], files["notChecked"]) == (False, "metadata-only", ["rows"])
    assert stand(node) == {"trust": "metadata-only", "absentFiles": 0, "notChecked": ["rows"]}
    for _ in range(2):
        assert node.must("pull", "cities", "--rows-later", "-o", "json").json()[0]["upToDate"]
    assert len(node.must("inspect", "trust", "cities", "-o", "json").json()["acceptances"]) == 2

    (rows,) = node.must("pull", "cities").out.splitlines()
    assert rows.startswith("cities: checked 6 rows of 4 blocks taken unchecked; root data")
    assert stand(node) == {"trust": "signed", "absentFiles": 0, "notChecked": []}


def test_metadata_then_everything(places: Places, tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("pull", places.whole, "--metadata-only")

    (line,) = node.must("pull", "cities").out.splitlines()

    fetched = f"fetched 2 files ({places.total_bytes:,} bytes) and checked 6 rows of 4 blocks taken unchecked"
    assert line.startswith(f"cities: {fetched}; root data")
    assert stand(node) == {"trust": "signed", "absentFiles": 0, "notChecked": []}


def test_peer_that_lacks_a_file_gives_the_others_and_the_next_one_the_rest(places: Places, tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("pull", places.partial, "--metadata-only")

    lacking = node.run("pull", "cities", "--rows-later")
    assert lacking.code == 3
    assert "'cities' lacks 1 file in this node" in lacking.err
    assert "it holds the dataset without this file, which others may have" in lacking.err
    assert stand(node) == {"trust": "metadata-only", "absentFiles": 1, "notChecked": ["files", "rows"]}

    line, left = node.must("pull", places.whole, "--rows-later").out.splitlines()
    assert line.startswith(
        f"cities: fetched 1 file ({places.first_bytes:,} bytes) of 4 blocks taken without; chain and"
    )
    assert left.startswith("cities: taken unchecked: rows;")
    assert stand(node) == {"trust": "metadata-only", "absentFiles": 0, "notChecked": ["rows"]}
