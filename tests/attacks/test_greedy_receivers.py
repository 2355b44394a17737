"""Servers that are pushed to and ask for more than is pushed: what they name is no reason to be given it (EX-87)."""

from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from yarl import URL

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.packing import DatasetObjects
from odf_node.composition import Node
from odf_node.ports.pushes import PushedHead
from odf_node.records.errors import ObjectNotFoundError
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.messages import (
    JSON_MEDIA_TYPE,
    MissingObject,
    NodeInfo,
    PushState,
    PushStatus,
    UploadProgress,
    encode_message,
)
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.multihash import Multihash
from odf_smart.pushing import SmartPush
from support.event_loop import in_loop
from support.exchange_nodes import NOON, TOKEN, Chain, TestNode
from support.http_server import serving

HIDDEN = b"rows of a dataset that nobody else may read"


def make_pusher(tmp_path: Path) -> tuple[TestNode, Chain]:
    """A node with one dataset that is to be pushed, and one that is hidden."""
    node, shown = TestNode.create(tmp_path / "pusher"), Chain("shown.data").add(b"rows for everybody")
    node.keep(shown)
    node.keep(Chain("hidden.data").add(HIDDEN), published=False)
    return node, shown


def proposal_of(chain: Chain) -> PushedHead:
    return PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)


async def send(pusher: TestNode, address: str, chain: Chain) -> object:
    """Push as ``odf-node push`` does."""
    with closing(Node(pusher.home, FixedClock(NOON))) as node:
        return await node.outgoing.send_push(address, proposal_of(chain), TOKEN, None)


@pytest.mark.parametrize("size_bytes", [len(HIDDEN), 1], ids=["as-it-is", "to-learn-whether-it-is-here"])
@in_loop
async def test_object_of_another_dataset_is_not_sent_to_who_says_that_it_is_missing(
    tmp_path: Path, size_bytes: int
) -> None:
    node, shown = make_pusher(tmp_path)
    wanted = Multihash.of_sha3_256(HIDDEN)
    missing = MissingObject(kind=ObjectKind.DATA, object_hash=str(wanted), size_bytes=size_bytes)
    received = b""

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal received
        if request.path.endswith("/node"):
            stated: msgspec.Struct = NodeInfo(node_id=None, software="x", protocol_versions=(1,), takes_pushes=True)
        elif "/objects/" in request.path:
            received += await request.read()
            stated = UploadProgress(position=len(received))
        else:
            await request.read()
            status = PushStatus.RECEIVING if not received else PushStatus.ACCEPTED
            upto = shown.head.sequence_number
            missed = () if received else (missing,)
            stated = PushState(
                push_id="p",
                status=status,
                known_head=None,
                received_upto=upto,
                missing=missed,
                missing_count=len(missed),
            )
        return web.Response(body=encode_message(stated), content_type=JSON_MEDIA_TYPE)

    async with serving(answer) as server:
        with pytest.raises(RejectedError, match="EX-87"):
            await send(node, f"{server.base}/shown.data", shown)
        assert [request.path for request in server.requests if request.method == "PUT"] == []
    assert received == b""


@pytest.mark.parametrize("is_smart", [False, True], ids=["exchange", "smart"])
@in_loop
async def test_chain_that_names_an_object_it_does_not_have_is_pushed_without_the_bytes(
    tmp_path: Path, is_smart: bool
) -> None:
    """Its publisher had it taken on its metadata alone, and is pushed back to (EX-81)."""
    node, _ = make_pusher(tmp_path)
    thief, receiver = Chain("thief.data").add(HIDDEN), TestNode.create(tmp_path / "receiver")
    receiver.put_token()
    node.keep(thief, has_objects=False)
    async with receiver.serving() as url, HttpClient(ClientSettings(token=TOKEN, attempts=1)) as client:
        there = f"{url}/thief.data/"
        if is_smart:
            sent = DatasetObjects(node.objects, node.store, thief.id)
            pushed: Awaitable[object] = SmartPush(client, URL(there), proposal_of(thief), node.store, sent, None).run()
        else:
            pushed = send(node, there, thief)
        with pytest.raises(ObjectNotFoundError):
            await pushed
    assert list(receiver.objects.iter_hashes()) == []
    assert receiver.store.list_datasets() == ()
    arrived = [path for path in receiver.home.downloads.glob("*/*") if path.stat().st_size]
    assert arrived == []
