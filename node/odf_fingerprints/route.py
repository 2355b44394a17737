"""The route by which others read fingerprints before they pull rows.

Source: clause FP-12 in ``spec/plug-ins/fingerprints.md``.
"""

import asyncio
from typing import Final

from aiohttp import web

from odf_fingerprints.exchange import PAGE_BYTES, pack_page
from odf_fingerprints.kept import KeptFingerprint, KeptFingerprints
from odf_node.composition import Node
from odf_node.http.addressed import get_followed, get_number
from odf_node.http.answers import CHANGING, answer_bytes
from odf_node.http.route_tables import Route, RouteTable
from odf_node.http.served_node import NODE
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.exchange.routes import PREFIX

_OWNER: Final = web.AppKey("node_of_fingerprints", Node)


def _prepare(app: web.Application, node: Node) -> None:
    app[_OWNER] = node


async def _get_fingerprints(request: web.Request) -> web.StreamResponse:
    record = await get_followed(request)
    after = max(get_number(request, "after", -1), -1)
    kept = KeptFingerprints(request.app[_OWNER].home.folder)
    page = await asyncio.to_thread(_read_page, kept, request.app[NODE].store, record, after)
    etag = f"{record.head.hash}-{after}-{len(page)}"
    body = pack_page([each.document for each in page])
    return answer_bytes(request, body, etag=etag, cache=CHANGING, content_type="application/octet-stream")


def _read_page(
    kept: KeptFingerprints, store: MetadataStore, record: DatasetRecord, after: int
) -> list[KeptFingerprint]:
    """Read a page of what is of the dataset's present history; others than the caller was answered about are none."""
    while page := kept.read_page(record.id, after=after, max_bytes=PAGE_BYTES):
        blocks = [store.find_block_by_number(record.id, each.sequence) for each in page]
        found = [
            each
            for each, stored in zip(page, blocks, strict=True)
            if stored is not None and stored.hash == each.block and each.sequence <= record.head.sequence_number
        ]
        if found:
            return found
        after = page[-1].sequence
    return []


ROUTES: Final = RouteTable(
    (
        Route(
            "GET",
            f"/{PREFIX}/datasets/{{dataset}}/fingerprints",
            _get_fingerprints,
            operation="""\
summary: Fingerprints that this node computed of a dataset's versions, by number (FP-12 in ../plug-ins/fingerprints.md).
parameters:
  - dataset
  - {name: after, in: query, description: Only those of later blocks., schema: {type: integer, minimum: -1}}
responses:
  200:
    description: Signed fingerprints, each behind its size (4 bytes, big-endian); none where there are no more.
    content: {application/octet-stream: {}}
  400: Problem
  404: Problem
""",
        ),
    ),
    _prepare,
)
"""Found by its entry point in the group ``odf_node.routes``."""
