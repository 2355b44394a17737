"""ODF's own engine contract over gRPC, so that other nodes can use the engine that this node uses.

It is a second way into ``contract.EngineSession``, not a second engine: requests are translated, results are put where
the caller wants them. Needs the extra ``grpc``.

Source: ODF "Engine contract"; ``spec/plug-ins/engine-grpc.md``.
"""
