"""Signatures of HTTP requests by a node's key: one strict profile of RFC 9421.

A request carries one signature, made with Ed25519 by the key that ``keyid`` names as ``did:key``. It covers at least
the method, the authority, the path and the query, and says when it was made and a word that is used once. What is
signed is text that begins with ``"``, so it is never what another purpose of the same key signs (SIG-2).

Source: clauses EX-50 to EX-53 in ``spec/extensions/exchange.md``; RFC 9421 sections 2, 3.1, 3.2, 3.3.6; RFC 8941 for
the spelling of both fields; RFC 9530 for ``content-digest``.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import MalformedError

TAG: Final = "odf-node"
"""Says what the signature is for, so that one made for another program is not taken here (RFC 9421 section 2.3)."""
LABEL: Final = "node"
REQUIRED: Final = ("@method", "@authority", "@path", "@query")
CONTENT_DIGEST: Final = "content-digest"

_MAX_FIELD_CHARACTERS: Final = 2_000  # guess: ours have 300
_LABEL: Final = r"([a-z*][a-z0-9_.*-]{0,63})"
_NAME: Final = r'"(@?[a-z0-9][a-z0-9_.-]{0,63})"'
_INPUT: Final = re.compile(rf"{_LABEL}=(\(((?: ?{_NAME})*)\)((?:;[a-z][a-z0-9_]{{0,15}}=[^;]{{1,256}})*))", re.ASCII)
_COMPONENT: Final = re.compile(_NAME, re.ASCII)
_PARAMETER: Final = re.compile(r";([a-z][a-z0-9_]{0,15})=([^;]{1,256})", re.ASCII)
_INTEGER: Final = re.compile(r"\d{1,15}", re.ASCII)
_STRING: Final = re.compile(r'"([ !#-\[\]-~]{0,254})"', re.ASCII)
_SIGNATURE: Final = re.compile(rf"{_LABEL}=:([A-Za-z0-9+/]{{86}}==):", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSignature:
    """What came with a request; nothing of it is verified.

    Attributes:
        components: Names of what is covered, in the order in which they were signed.
        parameters: ``@signature-params`` as it came: what is covered, and the parameters, as one text.
        key_id: Text of ``keyid``.
        created_s: Seconds since 1970.
        nonce: A word that the signer uses once.
        signature: 64 bytes.
    """

    components: tuple[str, ...]
    parameters: str
    key_id: str
    created_s: int
    nonce: str
    signature: bytes


def decode_signature(signature_input: str, signature: str) -> RequestSignature:
    """Read the fields ``Signature-Input`` and ``Signature`` of a request from somebody who is not trusted.

    Raises:
        MalformedError: They are not one signature in this profile: a required component or parameter is missing, there
            is one that is not known, or something twice.
    """
    if len(signature_input) > _MAX_FIELD_CHARACTERS:
        raise MalformedError("Signature-Input", expected=f"at most {_MAX_FIELD_CHARACTERS} characters", found="more")
    found, raw = _INPUT.fullmatch(signature_input), _SIGNATURE.fullmatch(signature)
    if found is None:
        raise MalformedError("Signature-Input", expected="one signature", found=repr(signature_input))
    if raw is None or raw[1] != found[1]:
        raise MalformedError("Signature", expected=f"64 bytes under the name '{found[1]}'", found=repr(signature[:200]))
    components = tuple(_COMPONENT.findall(found[3]))
    parameters = _PARAMETER.findall(found[5])
    values = dict(parameters)
    if len(set(components)) < len(components) or len(values) < len(parameters):
        raise MalformedError("Signature-Input", expected="everything once", found=repr(signature_input))
    missing = [name for name in REQUIRED if name not in components]
    strange = [name for name in components if name not in {*REQUIRED, CONTENT_DIGEST}]
    if missing or strange:
        wanted = ", ".join(REQUIRED)
        raise MalformedError("Signature-Input", expected=f"{wanted} and at most {CONTENT_DIGEST}", found=found[3])
    if set(values) != {"created", "keyid", "nonce", "alg", "tag"} or not _INTEGER.fullmatch(values["created"]):
        expected = "created, keyid, nonce, alg and tag"
        raise MalformedError("Signature-Input", expected=expected, found=repr(signature_input))
    if _text(values, "alg") != "ed25519" or _text(values, "tag") != TAG:
        raise MalformedError("Signature-Input", expected=f'alg="ed25519";tag="{TAG}"', found=found[5])
    return RequestSignature(
        components=components,
        parameters=found[2],
        key_id=_text(values, "keyid"),
        created_s=int(values["created"]),
        nonce=_text(values, "nonce"),
        signature=base64.b64decode(raw[2]),
    )


def encode_parameters(components: Iterable[str], *, key_id: str, created_s: int, nonce: str) -> str:
    """Write ``@signature-params`` of a request that is to be signed."""
    covered = " ".join(f'"{name}"' for name in components)
    return f'({covered});created={created_s};keyid="{key_id}";nonce="{nonce}";alg="ed25519";tag="{TAG}"'


def encode_fields(parameters: str, signature: bytes) -> dict[str, str]:
    """Write the two fields that a signed request carries."""
    return {
        "Signature-Input": f"{LABEL}={parameters}",
        "Signature": f"{LABEL}=:{base64.b64encode(signature).decode('ascii')}:",
    }


def signature_base(values: Mapping[str, str], components: Iterable[str], parameters: str) -> bytes:
    """Return what is signed.

    Args:
        values: Each component's value, as RFC 9421 sections 2.1 and 2.2 say: ``@authority`` in lower case and without
            the port that is usual, ``@path`` as it is sent, ``@query`` with its question mark.
        components: Names of what is covered, in order; each has a value.
        parameters: ``@signature-params``.

    Raises:
        MalformedError: A value is missing, or has characters that no HTTP field may have.
    """
    lines = []
    for name in components:
        value = values.get(name)
        if value is None or not value.isascii() or "\n" in value or "\r" in value:
            raise MalformedError("signed request", where=name, expected="one value in ASCII", found=repr(value))
        lines.append(f'"{name}": {value.strip()}')
    lines.append(f'"@signature-params": {parameters}')
    return "\n".join(lines).encode("ascii")


def content_digest(body: bytes) -> str:
    """Write the field ``Content-Digest`` of a body. Source: RFC 9530 section 2."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode('ascii')}:"


def _text(values: Mapping[str, str], name: str) -> str:
    found = _STRING.fullmatch(values[name])
    if found is None:
        raise MalformedError("Signature-Input", where=name, expected="a text", found=repr(values[name]))
    return found[1]
