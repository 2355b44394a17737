"""A plug-in: engines of other ODF implementations and programs in container images, and our engines for their nodes.

``archive`` unpacks what was saved of images; ``added`` runs an engine in our sandbox and asks it; ``grpc`` offers an
engine of ours to other nodes (``python -m odf_foreign.grpc``). These three know nothing of the node. The modules beside
them are its side: what a home keeps, commands, the source of kind ``Container``, lines of ``doctor``.

Source: ``spec/plug-ins/foreign.md`` and ``spec/plug-ins/engine-grpc.md``.
"""
