"""The route from which others pull by the Smart Transfer Protocol (SMART-8)."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web
from yarl import URL

from odf_node.http.addressed import get_followed
from odf_node.http.route_tables import Route
from odf_node.http.served_node import LIVE, NODE
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import BlockNotFoundError, ObjectNotFoundError
from odf_node.store import MetadataStore
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.exchange.limits import MAX_CONCURRENT_PACKS
from odf_protocol.exchange.routes import ObjectKind, object_path
from odf_protocol.multihash import Multihash
from odf_smart.batches import EMPTY_PLAN, plan_batch
from odf_smart.conversations import VERSION, VERSION_HEADER
from odf_smart.served_sockets import SOCKETS, close_sockets, converse, open_socket
from odf_smart_protocol.limits import MAX_ASKING_MESSAGE_BYTES
from odf_smart_protocol.messages import (
    Header,
    ObjectFile,
    PullStrategy,
    SmartPullRequest,
    TransferUrl,
)
from odf_smart_protocol.problems import InvalidInterval, TransferProblem
from odf_smart_protocol.pull_server import (
    LocateObjects,
    NotPrepared,
    ObjectsLocated,
    Prepare,
    PreparedTransfer,
    PullServer,
)

KINDS: Final[Mapping[str, ObjectKind]] = {"DataSlice": ObjectKind.DATA, "Checkpoint": ObjectKind.CHECKPOINT}

_PACKERS = web.AppKey("smart-packers", asyncio.Semaphore)


def prepare_app(app: web.Application) -> None:
    """Put into the application what the handler finds there."""
    app[SOCKETS] = {}
    app[_PACKERS] = asyncio.Semaphore(MAX_CONCURRENT_PACKS)
    app.on_shutdown.append(close_sockets)


def transfer_headers(request: web.Request) -> tuple[Header, ...]:
    """Give the headers that a transfer needs here: those with which the conversation was opened."""
    headers = [Header(name=VERSION_HEADER, value=VERSION)]
    if authorization := request.headers.get("Authorization"):
        headers.append(Header(name="authorization", value=authorization))
    return tuple(headers)


def dataset_url(request: web.Request) -> URL:
    """Give the dataset's address: below the node's own where that is set, else as the client wrote it."""
    asked = request.url.with_query(None).parent
    public = request.app[LIVE].configuration.listen.public_url
    return asked if public is None else URL(public).with_path(asked.raw_path, encoded=True)


async def _pull(request: web.Request) -> web.StreamResponse:
    record = await get_followed(request)
    socket = await open_socket(request, MAX_ASKING_MESSAGE_BYTES)
    chains = request.app[NODE].store

    async def carry_out(effect: Prepare | LocateObjects) -> Any:
        match effect:
            case Prepare(asked):
                async with request.app[_PACKERS]:
                    prepared = await finish_in_thread(lambda: prepare(chains, record.id, asked))
                if isinstance(prepared, PreparedTransfer) and prepared.batch is not None:
                    chains.access.note_read(record, what="blocks")
                return prepared
            case LocateObjects(objects):
                return await finish_in_thread(lambda: _locate(request, request.app[NODE].store, record, objects))

    await converse(request, socket, PullServer(asyncio.get_running_loop().time()), carry_out)
    return socket


def prepare(store: MetadataStore, dataset_id: DatasetId, asked: SmartPullRequest) -> PreparedTransfer | NotPrepared:
    """Make the batch that is asked for, and the plan of exactly this batch.

    Raises:
        BlockNotFoundError: ``stop_at`` is no block of the chain.
    """
    head = store.get_head(dataset_id)
    begin, stop = -1, head.sequence_number
    if asked.stop_at is not None:
        stop = _get_number(store, dataset_id, asked.stop_at)
    if asked.begin_after is not None:
        found = store.find_block(dataset_id, Multihash.parse(asked.begin_after))
        if found is not None:
            begin = found.sequence_number
        if (found is None or begin > stop) and not asked.force_update_if_diverged:
            tail = asked.begin_after
            return NotPrepared(
                TransferProblem(invalid_interval=InvalidInterval(head=asked.stop_at or str(head.hash), tail=tail))
            )
        begin = min(begin, stop)
    if begin == stop:
        return PreparedTransfer(EMPTY_PLAN, None)
    planned = plan_batch(store, dataset_id, after=begin, upto=stop)
    return PreparedTransfer(planned.plan, planned.batch)


def _get_number(store: MetadataStore, dataset_id: DatasetId, text: str) -> int:
    block_hash = Multihash.parse(text)
    found = store.find_block(dataset_id, block_hash)
    if found is None:
        raise BlockNotFoundError(dataset_id, block_hash)
    return found.sequence_number


def _locate(
    request: web.Request, store: MetadataStore, record: DatasetRecord, objects: tuple[ObjectFile, ...]
) -> ObjectsLocated:
    base, headers = dataset_url(request), transfer_headers(request)
    found = []
    for item in objects:
        if not store.names_object(record.id, item.hash):
            raise ObjectNotFoundError(item.hash)
        url = str(base / object_path(KINDS[item.object_type], item.hash))
        found.append(
            PullStrategy(
                object_file=item,
                pull_strategy="HttpDownload",
                download_from=TransferUrl(url=url, headers=headers),
            )
        )
    return ObjectsLocated(found)


ROUTES: Final = (
    Route(
        "GET",
        "/{dataset}/pull",
        _pull,
        operation="""\
summary: A WebSocket to pull by ODF's Smart Transfer Protocol (spec/plug-ins/smart-transfer.md).
parameters:
  - dataset
  - {name: x-odf-smtp-version, in: header, required: true, schema: {const: '1'}}
responses:
  101: {description: The conversation begins.}
  400: Problem
  404: Problem
  426: Problem
  503: Problem
""",
    ),
)
