"""The host of engines: what every engine that runs as a process of its own in the sandbox needs of the node's side.

Nouns: the *host* is the trusted side, which asks; a *guest* is an engine's program inside the sandbox, which answers.
The host sends requests, keeps limits, takes over files and checks them as hostile. It knows no engine by name and
imports none. What is also used inside the sandbox (messages, checks of outputs) stands here: both sides speak it.
``odf_engines.reading`` is the guest that reads Parquet.
"""
