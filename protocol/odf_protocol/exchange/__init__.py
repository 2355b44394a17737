"""The wire form of the exchange between nodes: limits, JSON messages, packs of blocks, byte ranges, problems.

Both ends use it, the server and the clients. Nothing here does I/O.

Source: clauses EX-1 to EX-24 in ``spec/extensions/exchange.md``.
"""
