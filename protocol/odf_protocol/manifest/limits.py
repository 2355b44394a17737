"""MAN-10: Bounds on what a manifest may cost to read.

A manifest comes from a file, a form or a peer, so every dimension that an author controls has a limit. Going over one
is a :class:`~odf_protocol.manifest.errors.ManifestError` where it happens, before the memory is spent.
"""

from __future__ import annotations

from typing import Final

#: Largest text, in bytes of UTF-8. An embedded attachment of a few MiB fits. # guess
MAX_TEXT_BYTES: Final = 16 * 1024 * 1024

#: Deepest nesting of maps and lists. Blocks nest 64 tables at most, and text needs up to two levels for each.
MAX_DEPTH: Final = 128

#: Most documents in one text: a printed chain has one per block. # guess
MAX_DOCUMENTS: Final = 100_000

#: Most maps, lists and scalars in one text. About 200 bytes and some microseconds each; an event has some 40. # guess
MAX_NODES: Final = 500_000

#: Longest single scalar, in characters: an attachment's content. # guess
MAX_SCALAR_CHARACTERS: Final = 4 * 1024 * 1024

#: Longest mapping key, in characters: no field name comes near; keys of extra attributes are URIs. # guess
MAX_KEY_CHARACTERS: Final = 1024

#: Most events in one snapshot: a snapshot states one of each kind, and a push source per producer. # guess
MAX_EVENTS: Final = 10_000
