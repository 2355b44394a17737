"""Fixtures that most tests of judging and taking datasets start with; a test of something else overrides them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from odf_node.composition import Node
    from support.offers import Judge, PeerChain


@pytest.fixture
def judge(tmp_path: Path) -> "Judge":
    """Somebody who judges what is offered, with an empty home."""
    from support.offers import Judge

    return Judge.create(tmp_path / "home")


@pytest.fixture
def node(judge: "Judge") -> "Iterator[Node]":
    """The node of the judge's home, where time stands still."""
    from odf_node.adapters.clocks import FixedClock
    from odf_node.composition import Node
    from odf_node.home_folder import HomeFolder
    from support.offers import NOW

    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node
    node.close()


@pytest.fixture
def chain(tmp_path: Path) -> "PeerChain":
    """A signed root dataset with two slices."""
    from support.offers import root_chain

    return root_chain(tmp_path)
