"""Isolation of foreign queries by the operating system: what a sandboxed process can see, call and use up.

A *profile* says what a sandbox contains, *bubblewrap* builds it, a *filter* denies system calls, and *limits* bound
what the process uses. Each layer holds when another one fails; none of them can be switched off by a request.

Source: clauses SANDBOX-1 to SANDBOX-12 in ``spec/extensions/sandbox.md``.
"""
