"""Requests that the node signs, so that a peer knows who asks (EX-50)."""

import secrets
from collections.abc import Mapping

from yarl import URL

from odf_node.ports.clock import Clock
from odf_node.ports.keys import PrivateKey
from odf_protocol.did import DidKey
from odf_protocol.http_signatures import CONTENT_DIGEST, REQUIRED, encode_fields, encode_parameters, signature_base

_NONCE_BYTES = 12  # guess: no two among all requests of a few minutes


class NodeSigner:
    """Signs with the node's key; each call makes a new nonce."""

    def __init__(self, key: PrivateKey, clock: Clock) -> None:
        self._key = key
        self._clock = clock
        self._key_id = str(DidKey(key.public_key()))

    def __call__(self, method: str, url: URL, fields: Mapping[str, str]) -> Mapping[str, str]:
        """Return the fields that sign the request."""
        digest = next((value for name, value in fields.items() if name.lower() == CONTENT_DIGEST), None)
        values = {
            "@method": method,
            "@authority": (url.host_port_subcomponent or "").lower(),
            "@path": url.raw_path or "/",
            "@query": f"?{url.raw_query_string}",
        }
        components: tuple[str, ...] = REQUIRED
        if digest is not None:
            values[CONTENT_DIGEST] = digest
            components = (*REQUIRED, CONTENT_DIGEST)
        parameters = encode_parameters(
            components,
            key_id=self._key_id,
            created_s=self._clock.now().seconds,
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
        )
        base = signature_base(values, components, parameters)
        return encode_fields(parameters, self._key.sign(base))
