"""Chains written by another implementation, in ``tests/data/kamu``."""

from pathlib import Path

from odf_protocol.block import Block, decode_block
from odf_protocol.multihash import Multihash

KAMU = Path(__file__).parents[1] / "data" / "kamu"
DATASETS = sorted(folder.name for folder in (KAMU / "datasets").iterdir())


def read_chain(dataset: str) -> list[Block]:
    """Read a dataset in ODF repository layout from its head back; returns the blocks oldest first."""
    folder = KAMU / "datasets" / dataset
    blocks: list[Block] = []
    name: Multihash | None = Multihash.parse((folder / "refs" / "head").read_text())
    while name is not None:
        blocks.append(decode_block((folder / "blocks" / str(name)).read_bytes(), expected_hash=name))
        name = blocks[-1].prev_block_hash
    return blocks[::-1]
