"""Pushes whose verification ends in a way that nobody foresaw: told to the pusher, and the node ends as it should."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from odf_engines.errors import EngineFailureError, EngineMissingError, InvalidQueryError, LimitExceededError
from odf_protocol.errors import OdfError
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode

FAILURES: list[Exception] = [
    EngineFailureError("the sandbox ended", log="secret of this machine"),
    EngineMissingError("none", ("spark",)),
    InvalidQueryError("a query of the pusher"),
    LimitExceededError("seconds", allowed=600),
    OdfError("something else in our tree"),
    RuntimeError("a fault of ours"),
    KeyError("a fault of ours"),
]


@asynccontextmanager
async def pushing(node: TestNode, **headers: str) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    async with (
        node.serving(push_grace_s=1) as url,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}", **headers}) as session,
    ):
        yield url, session


async def push(url: str, session: aiohttp.ClientSession, chain: Chain) -> Any:
    """Push a chain without objects by hand; give the state after its verification."""
    head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
    asked = {"dataset_id": str(chain.id), "name": chain.name, "head": head, "signed_head": None}
    async with session.post(f"{url}/_odf/v1/pushes", json=asked) as answer:
        place = f"{url}/_odf/v1/pushes/{(await answer.json())['push_id']}"
    body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
    async with session.post(f"{place}/blocks?after=-1", data=body) as answer:
        assert answer.status == 200
    async with session.post(f"{place}/commit") as answer:
        assert answer.status == 202
    async with session.get(f"{place}?wait_s=10") as answer:
        return await answer.json()


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@in_loop
async def test_push_that_fails_in_any_way_says_so_and_the_node_ends_in_order(
    tmp_path: Path, failure: Exception
) -> None:
    node = TestNode.create(tmp_path / "home")
    node.put_token()
    kept = node.keep(Chain("kept.data").add(b"rows"))
    async with pushing(node) as (url, session):
        node.receiver.reject_with = failure
        state = await push(url, session, Chain("pushed.data"))
        assert state["status"] == "failed"
        assert state["problem"]["status"] >= 500
        assert state["problem"]["type"].startswith("urn:odf-node:problem:")
        assert "secret" not in json.dumps(state)
        assert [(record.name, record.head) for record in node.store.list_datasets()] == [("kept.data", kept.head)]
        # Others are served, and the next push is judged.
        async with session.get(f"{url}/kept.data/refs/head") as answer:
            assert answer.status == 200
        node.receiver.reject_with = None
        assert (await push(url, session, Chain("other.data")))["status"] == "accepted"
    # Leaving raised nothing: the daemon ends with code 0.
