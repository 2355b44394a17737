"""Where another history parts from the one held here, asked of the function that says so (ACCEPT-9)."""

from pathlib import Path

import pytest

from odf_node.acceptance.histories import find_last_common
from odf_node.composition import Node
from odf_protocol.multihash import Multihash
from support.offers import Judge, PeerChain, PublisherHome, root_chain
from support.own_datasets import record_of

OTHER = Multihash.of_sha3_256(b"another block")
LENGTH = 9


def held_chain(folder: Path) -> PeerChain:
    chain = root_chain(folder)
    while len(chain.blocks) < LENGTH:
        chain.add_rows(((f"City {len(chain.blocks)}", 1),))
    return chain


@pytest.mark.parametrize("theirs", [1, 2, LENGTH - 1, LENGTH, LENGTH + 1, 3 * LENGTH])
def test_last_common_block_is_the_one_before_the_first_that_differs(
    judge: Judge, node: Node, tmp_path: Path, theirs: int
) -> None:
    """ACCEPT-9: at every place of parting, for histories that are shorter, as long, and longer."""
    held = held_chain(tmp_path)
    PublisherHome(judge).keep(held)
    record = record_of(node)
    hashes = [block.hash for block in held.blocks]
    for parts_at in range(min(theirs, LENGTH) + 1):
        other = dict(enumerate([*hashes[:parts_at], *[OTHER] * (theirs - parts_at)]))
        assert find_last_common(node.store, record, other) == parts_at - 1
    assert find_last_common(node.store, record, {}) == -1
