"""ODF's own engine contract over gRPC, so that other nodes can use the engine that this node uses.

It is a second way into ``contract.EngineSession``, not a second engine: requests are translated, results are put where
the caller wants them. Needs the extra ``grpc``.

Source: ODF "Engine contract"; ``spec/extensions/engine-grpc.md``.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.grpc import desk as desk
    from odf_engines.grpc import folders as folders
    from odf_engines.grpc import service as service
else:
    __getattr__ = late_modules(__name__)
