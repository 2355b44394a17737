"""The host of engines: what every engine that runs as a process of its own in the sandbox needs of the node's side.

Nouns: the *host* is the trusted side, which asks; a *guest* is an engine's program inside the sandbox, which answers.
The host sends requests, keeps limits, takes over files and checks them as hostile. It knows no engine by name and
imports none. What is also used inside the sandbox (messages, checks of outputs) stands here: both sides speak it.
``odf_engines.reading`` is the guest that reads Parquet.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.host import arrow_texts as arrow_texts
    from odf_engines.host import ingest_receive as ingest_receive
    from odf_engines.host import output_rows as output_rows
    from odf_engines.host import receive as receive
    from odf_engines.host import slices as slices
    from odf_engines.host import step_parts as step_parts
    from odf_engines.host import tables as tables
    from odf_engines.host import worker as worker
else:
    __getattr__ = late_modules(__name__)
