"""Gossip: what nodes tell each other without being asked: heads, proofs, attestations, peers.

The daemon finds ``route.ROUTES`` and ``service.SERVICE`` by their entry points. What is decided without I/O is in
``odf_gossip_protocol``.

Source: clauses GOSSIP-1 to GOSSIP-57 in ``spec/plug-ins/gossip.md``.
"""
