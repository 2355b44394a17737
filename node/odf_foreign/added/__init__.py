"""Engines that other ODF implementations ship, run in our sandbox and asked by ODF's own gRPC contract.

An *added engine* is a program, or the root folder of a container with a program in it, which the operator of a node
took from a file. It answers ODF's contract at a port. Inside its sandbox, whose network has nothing but its own
loopback, a small program of ours (``worker``) starts it, asks it, and speaks for it to the host. So bytes of the engine
are first read where they can do no harm, and what leaves the sandbox is checked as any guest's answer is.

Outside the sandbox run ``content`` and ``engine``; ``worker``, ``program`` and ``requests`` run inside.

Source: clauses ADDED-1 to ADDED-12 in ``spec/plug-ins/foreign.md``.
"""
