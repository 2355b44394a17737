"""The gate: decides on the parsed and the analysed plan of a query, never on its text, whether it may run.

One question a module, asked in this order:

* ``statement``: is it one query, over nothing but declared relations and known functions, also after
  analysis? (for any query; ``map_class`` is stricter)
* ``purity``: does its result follow from its rows alone? (for queries that others will repeat)
* ``purity``, ``row_order``: does it rest on one build of the engine besides? (for the same)
* ``map_class``: does it only project and filter the rows of one input? (the class that ``transform`` executes)

The sandbox holds without the gate; the gate is there to say early and clearly what will not work, and why.

Source: clauses GATE-1 to GATE-17 in ``spec/extensions/engine-contract.md``.
"""
