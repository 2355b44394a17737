"""Pages of fingerprints between nodes, and asking another node for its own.

What comes is untrusted: it is bounded, verified and read in full before any of it is kept.

Source: clauses FP-9 and FP-12 in ``spec/plug-ins/fingerprints.md``.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from odf_fingerprints.documents import MAX_BYTES
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint
from odf_fingerprints.signing import decode_signed
from odf_node.adapters.exchange_peer import split_dataset_url
from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.outgoing import Outgoing
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.routes import dataset_path
from odf_protocol.signatures import PUBLIC_KEY_BYTES, SIGNATURE_BYTES

PAGE_BYTES: Final = 2 * 1024 * 1024
"""Of fingerprints in one answer, or one that is larger."""
MAX_DOCUMENT_BYTES: Final = MAX_BYTES + PUBLIC_KEY_BYTES + SIGNATURE_BYTES
MAX_ANSWER_BYTES: Final = PAGE_BYTES + MAX_DOCUMENT_BYTES + 64 * 1024
MAX_FETCHED_BYTES: Final = 256 * 1024 * 1024  # guess: ten thousand versions of twenty columns
_SIZE: Final = struct.Struct(">I")


def pack_page(documents: Sequence[bytes]) -> bytes:
    """Write a page: each document behind its size."""
    return b"".join(_SIZE.pack(len(each)) + each for each in documents)


def unpack_page(raw: bytes) -> list[bytes]:
    """Read a page.

    Raises:
        MalformedError: It ends within a document, or has one that is too large or empty.
    """
    found: list[bytes] = []
    position = 0
    while position < len(raw):
        start = position + _SIZE.size
        size = _SIZE.unpack_from(raw, position)[0] if start <= len(raw) else 0
        if not 0 < size <= MAX_DOCUMENT_BYTES or start + size > len(raw):
            raise MalformedError("page of fingerprints", where=position, expected="a size, and so many bytes")
        found.append(raw[start : start + size])
        position = start + size
    return found


async def fetch_fingerprints(
    outgoing: Outgoing, address: str, *, dataset: DatasetId | None, after: int = -1
) -> list[KeptFingerprint]:
    """Ask a node for the fingerprints that it computed, before any rows are pulled.

    Args:
        outgoing: Of this node.
        address: Of the dataset at a node that speaks our exchange.
        dataset: Which dataset it must be; None: the one that the first is about.
        after: Only later versions.

    Returns:
        By number, verified, without what they say being checked against rows. Nothing is kept.

    Raises:
        MalformedError, RejectedError: No such address, or what came is no page of signed fingerprints.
        PeerLiedError: They are of another dataset, or not in order.
        PeerNotFoundError, PeerForbidsError, PeerUnavailableError: As the peer answers.
        UnsupportedError: They are more than 256 MiB.
    """
    url = parse_peer_url(address)
    if isinstance(url, Path):
        raise MalformedError("address", expected="an http or https address of a node", found=repr(address))
    base, name = split_dataset_url(url)
    place = base / dataset_path(name) / "fingerprints"
    found: list[KeptFingerprint] = []
    size = 0
    async with HttpClient(await outgoing.make_settings(address)) as client:
        while True:
            asked = place.with_query(after=str(after))
            body = await client.get_bytes(asked, "dataset", limit_bytes=MAX_ANSWER_BYTES)
            documents = unpack_page(body)
            if not documents:
                return found
            size += len(body)
            if size > MAX_FETCHED_BYTES:
                raise UnsupportedError("fingerprints", found=f"more than {MAX_FETCHED_BYTES >> 20} MiB of them")
            for document in documents:
                stated = decode_signed(document).fingerprint
                dataset = dataset or stated.dataset_id
                if stated.dataset_id != dataset or stated.sequence <= after:
                    expected = f"of {dataset}, above {after}"
                    raise PeerLiedError(
                        str(asked), "FP-12 order", expected=expected, found=f"{stated.dataset}, {stated.sequence}"
                    )
                after = stated.sequence
                found.append(KeptFingerprint(after, stated.block_hash, FingerprintOrigin.PEER, document))
