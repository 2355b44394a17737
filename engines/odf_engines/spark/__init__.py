"""Apache Spark as an engine: SQL over slices, in one sandboxed process that stays warm.

Outside the sandbox run ``engine``, ``runtime`` and ``class_data``, with what the host has for
every engine; everything else here runs inside the sandbox, started by ``worker``.

Source: clauses ENGINE-1 to ENGINE-12 in ``spec/extensions/engine-contract.md``.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.spark import answering as answering
    from odf_engines.spark import class_data as class_data
    from odf_engines.spark import cluster as cluster
    from odf_engines.spark import gate as gate
else:
    __getattr__ = late_modules(__name__)
