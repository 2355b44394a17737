"""What is foreign to the node, as protocols with their contracts, and the values that cross them.

Every method of every port may be called from any thread, and several processes may use one home at the same time.
Methods block: asynchronous callers wrap them in ``asyncio.to_thread``. Adapters raise only errors of the tree in
``odf_protocol.errors``; misuse by our own code raises ``ValueError``.
"""
