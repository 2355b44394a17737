"""The daemon: one home served for months, and what goes on beside the server.

``serving`` starts and ends all of it. ``housekeeping`` cares for the home meanwhile: the scrub, renewal of heads,
rebuilding, warm engines, and commands that are run for users. ``background_work`` runs what plug-ins
bring, ``reloading`` takes over new settings, ``gauges`` and ``supervisor`` tell others how the node is doing.

Source: ``spec/daemon.md``.
"""
