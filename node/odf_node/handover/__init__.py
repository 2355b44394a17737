"""Commands that the running daemon runs for whoever typed them.

A command spends most of a short run with starting Python and loading itself. The daemon of a home therefore keeps a
*fork server*: a process with one thread that has loaded what commands need and waits. A *client* (``odf-node pull``,
before it has loaded anything) hands over its words, environment, working folder and streams; the fork server forks a
*worker*, which becomes that command in every respect and ends with it. Whatever speaks against it, the client does
the work by itself, as without a daemon.

Source: clauses HAND-1 to HAND-9 in ``spec/daemon.md``.
"""
