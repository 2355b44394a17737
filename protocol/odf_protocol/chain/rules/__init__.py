"""The rules, in the order in which a block is judged: links first, so that later rules speak about the right block.

Source: ``spec/chain.md``.
"""

from odf_protocol.chain.rule import Rule
from odf_protocol.chain.rules import data_blocks, links, schemas, sources, transforms
from odf_protocol.chain.rules.links import FIRST_BLOCK_RULES

__all__ = ["FIRST_BLOCK_RULES", "RULES"]

RULES = tuple(
    rule
    for module in (links, data_blocks, sources, transforms, schemas)
    for rule in vars(module).values()
    if isinstance(rule, Rule) and rule not in FIRST_BLOCK_RULES
)
"""All rules that those modules define, in the order in which they stand there."""
