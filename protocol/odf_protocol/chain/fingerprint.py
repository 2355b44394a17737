"""A digest of a definition, so that the state need not carry the definition itself.

Source: ``spec/chain.md``.
"""

import hashlib

from odf_protocol import wire
from odf_protocol.events import AddPushSource
from odf_protocol.events.equality import with_defaults


def push_source_fingerprint(event: AddPushSource) -> bytes:
    """Digest a push source such that two have the same digest exactly if they mean the same.

    Returns:
        32 bytes, SHA3-256 of the definition in the wire's form with every default filled in.
    """
    return hashlib.sha3_256(wire.encoder.encode_root(with_defaults(event))).digest()
