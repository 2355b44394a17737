"""The programs that ask servers for rows: each run as a process of its own, of bounded memory.

A server may send anything, and client libraries believe it: libpq keeps one row whole, an FTP client an answer whose
lines do not end, a bucket's client each list of objects, and a broker's messages have up to 256 MiB. So they run here,
where the end of the process is an answer like any other.

``sources.reader_process`` starts ``python -m`` this package with the name of a module, which has ``MEMORY_BYTES`` and
``answer(request, content)``, and writes one request in JSON.
What was asked for comes on standard output (messages go into a file of the node's home, and are acknowledged once they
are on disk), and at the end one line on standard error says how far it goes, or what is wrong. They import nothing else
of the node than they need, so that they start in a third of a second.

Source: clauses ING-31 to ING-33 and ING-45 in ``spec/plug-ins/sources.md``.
"""

from collections.abc import Iterable
from typing import Any

from odf_protocol.errors import shown


class SourceError(Exception):
    """What is wrong with a server or what it sends, and its kind in the words of ``reader_process``."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def fault(kind: str, found: object, secrets: Iterable[str | None] = (), expected: object = "") -> dict[str, Any]:
    """Say what is wrong in one line; a server that was told ``secrets`` may repeat them."""
    text = " ".join(str(found).split())
    for secret in filter(None, secrets):
        text = text.replace(secret, "...")
    return {"error": {"kind": kind, "found": shown(text), "expected": str(expected)}}
