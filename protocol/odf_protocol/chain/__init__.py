"""Which chains are valid: the state after a block, the rules for the next one, and the verifier of many.

Chain
    Blocks of one dataset, each linked to the one before by hash, from the Seed on.
State
    What the rules need to know about the blocks so far; small, so that one more block costs the same at any length.
Rule
    One numbered clause of ``spec/chain.md`` as one function over state and block.
Strictness
    Some rules are ours: chains that others wrote may break them, and then it is said, not rejected.

Source: ``spec/chain.md``.
"""

from odf_protocol.chain.rule import ChainWarning, Strictness
from odf_protocol.chain.state import ChainState, InputProgress, PushSource
from odf_protocol.chain.verify import append

__all__ = ["ChainState", "ChainWarning", "InputProgress", "PushSource", "Strictness", "append"]
