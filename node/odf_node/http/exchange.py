"""Our reading routes: nodes, datasets, heads, packs, statements, key logs (EX-7, EX-8, EX-14, EX-89, KEY-21)."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from odf_node.adapters.packing import iter_packed
from odf_node.http.addressed import get_followed, get_number, get_readable
from odf_node.http.answers import CHANGING, answer_bytes, answer_message
from odf_node.http.callers import get_caller
from odf_node.http.route_tables import Route
from odf_node.http.sending import wait_to_send
from odf_node.http.served_node import NODE
from odf_node.readable_inputs import may_see_records
from odf_node.records.datasets import DatasetRecord
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_protocol.coverage import decode_progress
from odf_protocol.enums import DatasetKind
from odf_protocol.exchange.limits import (
    MAX_CONCURRENT_PACKS,
    MAX_WAITING_SEARCHES,
    PAGE_ATTESTATION_BYTES,
    PAGE_ATTESTATIONS,
    PAGE_DATASETS,
)
from odf_protocol.exchange.messages import (
    AttestationPage,
    DatasetPage,
    DatasetSummary,
    DatasetTexts,
    DisputeList,
    HashAnswer,
    HeadAnswer,
    HeadMessage,
    KeyLogMessage,
    Kind,
    NodeInfo,
)
from odf_protocol.exchange.packs import PACK_MEDIA_TYPE, encode_pack
from odf_protocol.exchange.routes import PREFIX, PROTOCOL_VERSION

_PACKERS: Final = web.AppKey("packers", asyncio.Semaphore)
_SEARCHES: Final = web.AppKey("searches", FairSemaphore)

_DESCRIPTION: Final = Path(__file__).with_name("openapi.yaml")
"""Here a link to ``spec/schemas/openapi.yaml``, in a wheel the file itself."""


def prepare_app(app: web.Application) -> None:
    """Make what the routes work with."""
    app[_PACKERS] = asyncio.Semaphore(MAX_CONCURRENT_PACKS)
    app[_SEARCHES] = FairSemaphore(lambda: TurnLimits(1, MAX_WAITING_SEARCHES))


async def _get_node(request: web.Request) -> web.Response:
    node = request.app[NODE]
    return answer_message(
        NodeInfo(
            node_id=None if node.node_id is None else str(node.node_id),
            software=node.software,
            protocol_versions=(PROTOCOL_VERSION,),
            takes_pushes=node.pushes is not None,
        )
    )


async def _list_datasets(request: web.Request) -> web.Response:
    after = request.query.get("after", "")
    words = request.query.getall("word", [])
    node, caller = request.app[NODE], get_caller(request)

    def find() -> tuple[Sequence[tuple[DatasetRecord, DatasetTexts | msgspec.UnsetType]], str | None]:
        records = node.store.list_readable(caller.reads)
        if words:
            return node.search.find_page(words, records, after=after)
        page = [record for record in records if record.name > after][: PAGE_DATASETS + 1]
        goes_on = page[PAGE_DATASETS - 1].name if len(page) > PAGE_DATASETS else None
        return [(record, msgspec.UNSET) for record in page[:PAGE_DATASETS]], goes_on

    def make_page() -> DatasetPage:
        shown, goes_on = find()
        summaries = (
            DatasetSummary(
                dataset_id=str(record.id),
                name=record.name,
                kind=_kind(record),
                head=HeadMessage.of(record.head),
                trust=_describe_trust(record, node.store.get_chain_state(record.id)[1]),
                texts=texts,
            )
            for record, texts in shown
        )
        return DatasetPage(datasets=tuple(summaries), next_after=goes_on)

    # Whoever searches has all definitions read: one at a time.
    async with request.app[_SEARCHES].ask(caller.peer) if words else nullcontext():
        return answer_message(await asyncio.to_thread(make_page))


def _describe_trust(record: DatasetRecord, state: bytes) -> str:
    if record.kind is DatasetKind.ROOT:
        return record.trust.value
    # What makes it partial (PLAN-10) may be long; whoever asks has the chain, which says so.
    return record.trust.in_words("see its chain" if decode_progress(state).partial else "")


async def _get_head(request: web.Request) -> web.Response:
    record = await get_followed(request)
    signed = await asyncio.to_thread(request.app[NODE].store.find_signed_head, record.id)
    key_events = await asyncio.to_thread(request.app[NODE].key_logs.documents_about, record.id)
    # The chain may have grown between the two reads: the answer is about the head that the document vouches for.
    head = record.head if signed is None else signed.head
    return answer_message(
        HeadAnswer(
            dataset_id=str(record.id),
            name=record.name,
            kind=_kind(record),
            head=HeadMessage.of(head),
            signed_head=None if signed is None else signed.raw,
            key_events=len(key_events) or msgspec.UNSET,
        )
    )


async def _get_blocks(request: web.Request) -> web.Response:
    record = await get_followed(request)
    after = max(get_number(request, "after", -1), -1)
    upto = min(get_number(request, "upto", record.head.sequence_number), record.head.sequence_number)
    node = request.app[NODE]
    reads = get_caller(request).reads
    with_records = await asyncio.to_thread(lambda: may_see_records(node.store, record, reads))
    node.store.access.note_read(record, what="blocks")
    etag = f"{record.head.hash}-{after}-{upto}{'' if with_records else '-bare'}"
    async with request.app[_PACKERS]:
        packed = iter_packed(node.store, record.id, after, upto, with_records=with_records)
        body, _ = await asyncio.to_thread(lambda: encode_pack(packed))
    answer = answer_bytes(request, body, etag=etag, cache=CHANGING, content_type=PACK_MEDIA_TYPE)
    if answer.body and request.method != "HEAD":
        await wait_to_send(request, len(body))
    return answer


async def _get_hash(request: web.Request) -> web.Response:
    record = await get_followed(request)
    number = get_number(request, "number", 0)
    found = await asyncio.to_thread(request.app[NODE].store.find_block_by_number, record.id, number)
    return answer_message(HashAnswer(block_hash=None if found is None else str(found.hash)))


async def _get_attestations(request: web.Request) -> web.Response:
    record = await get_readable(request)
    skip = max(get_number(request, "skip", 0), 0)
    evidence = request.app[NODE].store

    def read() -> AttestationPage:
        page: list[bytes] = []
        size_bytes = 0
        for attestation in islice(evidence.iter_attestations(record.id), skip, None):
            size_bytes += len(attestation.raw)
            if len(page) == PAGE_ATTESTATIONS or (page and size_bytes > PAGE_ATTESTATION_BYTES):
                return AttestationPage(attestations=tuple(page), next_skip=skip + len(page))
            page.append(attestation.raw)
        return AttestationPage(attestations=tuple(page))

    return answer_message(await asyncio.to_thread(read))


async def _get_disputes(request: web.Request) -> web.Response:
    record = await get_readable(request)
    documents = await asyncio.to_thread(request.app[NODE].disputes.documents_about, record.id)
    shown: list[bytes] = []
    for document in documents:
        # One proof is enough; all of them in one message need not fit.
        if sum(map(len, shown)) + len(document) <= PAGE_ATTESTATION_BYTES:
            shown.append(document)
    return answer_message(DisputeList(documents=tuple(shown)))


async def _get_keys(request: web.Request) -> web.Response:
    record = await get_readable(request)
    events = await asyncio.to_thread(request.app[NODE].key_logs.documents_about, record.id)
    return answer_message(KeyLogMessage(events=events))


def _kind(record: DatasetRecord) -> Kind:
    return "Derivative" if record.kind.text == "Derivative" else "Root"


async def _get_description(_request: web.Request) -> web.FileResponse:
    """Give the specification's description of routes and messages, for programs (EX-88)."""
    return web.FileResponse(_DESCRIPTION, headers={"Content-Type": "application/yaml"})  # Source: RFC 9512


ROUTES: Final = (
    Route(
        "GET",
        "/openapi.yaml",
        _get_description,
        operation="""\
summary: This description (EX-88).
responses:
  200: {description: This file., content: {application/yaml: {}}}
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/node",
        _get_node,
        operation="""\
summary: Who answers and what it speaks (EX-1).
responses:
  200: {description: The node., content: {application/json: {schema: {$ref: '#/components/schemas/NodeInfo'}}}}
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets",
        _list_datasets,
        operation="""\
summary: Published datasets by name, in pages (EX-14), or those in which words occur (EX-89).
parameters:
  - {name: after, in: query, description: next_after of the page before., schema: {type: string}}
  - {name: word, in: query, description: All have to occur in a dataset's texts., schema: {type: array,
        maxItems: 8, items: {type: string, minLength: 1, maxLength: 100}}}
responses:
  200: {description: A page., content: {application/json: {schema: {$ref: '#/components/schemas/DatasetPage'}}}}
  400: Problem
  503: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/head",
        _get_head,
        operation="""\
summary: The newest block and the document that vouches for it (EX-14).
parameters: [dataset]
responses:
  200: {description: The head., content: {application/json: {schema: {$ref: '#/components/schemas/HeadAnswer'}}}}
  404: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/blocks",
        _get_blocks,
        operation="""\
summary: A pack of blocks (EX-7, EX-8).
parameters:
  - dataset
  - {name: after, in: query, schema: {type: integer, minimum: -1, default: -1}}
  - {name: upto, in: query, schema: {type: integer, minimum: 0}}
responses:
  200: {description: A pack., content: {application/vnd.odf-node.pack+zstd: {}}}
  304: {description: The client has it.}
  400: Problem
  404: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/hash",
        _get_hash,
        operation="""\
summary: The hash of one block, by its number; to find where histories part (EX-60).
parameters:
  - dataset
  - {name: number, in: query, required: true, description: of the block, schema: {type: integer,
        minimum: 0}}
responses:
  200: {description: 'The hash, null where the chain has no such block.', content: {application/json: {
          schema: {$ref: '#/components/schemas/HashAnswer'}}}}
  404: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/attestations",
        _get_attestations,
        operation="""\
summary: Signed statements about the dataset, in pages (EX-14).
parameters:
  - dataset
  - {name: skip, in: query, schema: {type: integer, minimum: 0, default: 0}}
responses:
  200: {description: A page., content: {application/json: {schema: {$ref: '#/components/schemas/AttestationPage'}}}}
  404: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/disputes",
        _get_disputes,
        operation="""\
summary: Proofs that the dataset's key signed two histories, and its owner's settlements (EQUIV-10).
parameters: [dataset]
responses:
  200: {description: All that is known here and fits into one answer., content: {application/json: {
          schema: {$ref: '#/components/schemas/DisputeList'}}}}
  404: Problem
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/datasets/{{dataset}}/keys",
        _get_keys,
        operation="""\
summary: The log of the dataset's keys in force (KEY-21).
parameters: [dataset]
responses:
  200: {description: The whole log; empty where the dataset never changed its key., content: {application/json: {
          schema: {$ref: '#/components/schemas/KeyLogMessage'}}}}
  404: Problem
""",
    ),
)
