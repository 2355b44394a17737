"""Apache DataFusion as an engine: what another ODF implementation's engine of that name computes, to the bit.

A step sees the new rows of its inputs and nothing else: there is no state, so aggregates, windows and joins are over
one step, and operations are columns like others. What that means for those who read a derivative is said when it is
added. Outside the sandbox run ``engine`` and ``runtime``; everything else here runs inside, started by ``worker``.

Source: clauses FUSION-1 to FUSION-9 in ``spec/extensions/engine-contract.md``.
"""
