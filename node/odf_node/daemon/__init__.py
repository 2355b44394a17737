"""The daemon: one home served for months, and what goes on beside the server.

``serving`` starts and ends all of it. ``housekeeping`` cares for the home meanwhile: the scrub, renewal of heads,
rebuilding, the warm engine, and commands that are run for users. ``gossip_tasks`` talks with other nodes, ``reloading``
takes over new settings, ``gauges`` and ``supervisor`` tell others how the node is doing.

Source: ``spec/daemon.md``.
"""
