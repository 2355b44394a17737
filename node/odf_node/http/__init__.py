"""The node's HTTP side: ODF's Simple Transfer Protocol and our exchange on one port.

The routes hold no decisions: they parse, bound, ask a port and answer. ``create_app`` in ``server`` joins them,
``serve`` runs them.

Source: ``spec/extensions/exchange.md``; routes are described in ``spec/schemas/openapi.yaml``.
"""
