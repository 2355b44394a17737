"""The rules, in the order in which a block is judged: links first, so that later rules speak about the right block.

Source: ``spec/chain.md``.
"""

from odf_protocol.chain.rules import (
    checkpoints,
    first_block,
    inputs,
    kinds,
    links,
    offsets,
    progress,
    schemas,
    slices,
    sources,
    transforms,
    vocabularies,
    watermarks,
)

__all__ = ["FIRST_BLOCK_RULES", "RULES"]

FIRST_BLOCK_RULES = first_block.RULES

RULES = (
    *links.RULES,
    *kinds.RULES,
    *progress.RULES,
    *offsets.RULES,
    *slices.RULES,
    *checkpoints.RULES,
    *watermarks.RULES,
    *inputs.RULES,
    *sources.RULES,
    *transforms.RULES,
    *schemas.RULES,
    *vocabularies.RULES,
)
