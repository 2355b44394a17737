"""The Smart Transfer Protocol live with another ODF implementation, in all four roles (SMART-1 to SMART-12)."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odf_node.adapters.accounts import validate_token
from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.adapters.peer_addresses import open_peer
from odf_node.ports.peer_client import PeerSpeaks
from odf_node.ports.peer_errors import PeerForbidsError, PeerNotFoundError, PushRejectedError
from odf_node.ports.pushes import PushedHead, PushOutcome
from odf_protocol.block import decode_block, encode_block
from odf_protocol.errors import RejectedError
from odf_protocol.events import AddData, DatasetKind, Event, Seed, SetInfo
from odf_protocol.exchange.block_outlines import iter_wanted
from support.chains import later, push_source, schema
from support.event_loop import in_loop
from support.exchange_nodes import KAMU_DATA, TOKEN, Chain, TestNode, dataset_id, read_kamu_chain
from support.kamu_workspace import PeerError, PeerServer, PeerWorkspace
from support.nodes import RanCommand, RealNode

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

# Slices of some megabytes; several small ones; none at all.
NAMES = ["countries.daily", "upsert.accounts", "empty.seed"]


def chain_of(name: str, events: Sequence[Event], *, version: int = 3) -> Chain:
    """A valid chain of blocks without rows."""
    blocks: list[bytes] = []
    for number, event in enumerate((Seed(dataset_id=dataset_id(name), dataset_kind=DatasetKind.ROOT), *events)):
        previous = decode_block(blocks[-1], expected_hash=None).hash if blocks else None
        blocks.append(
            encode_block(
                event,
                system_time=later(number),
                prev_block_hash=previous,
                sequence_number=number,
                version=version,
            )
        )
    return Chain(name, [decode_block(raw, expected_hash=None) for raw in blocks])


def forked(name: str = "forked") -> tuple[Chain, Chain]:
    """Two histories of one dataset."""
    return (
        chain_of(name, [push_source(), SetInfo(description="one")]),
        chain_of(name, [push_source(), SetInfo(description="other"), SetInfo(description="longer")]),
    )


def long_chain(length: int) -> Chain:
    return chain_of(
        "long.chain",
        [push_source(), schema(), *(AddData(new_watermark=later(number)) for number in range(length - 3))],
    )


def part_of(chain: Chain, end: int) -> Chain:
    return Chain(chain.name, chain.blocks[:end], chain.objects)


def keep(node: TestNode, chain: Chain) -> None:
    record = node.store.find_dataset(chain.id)
    if record is None or record.head != chain.head:
        node.keep(chain)


async def pull(address: str, node: TestNode, *, token: str | None = None, known: Chain | None = None) -> Chain:
    """Bring a dataset into our object store; the rules are for others to test."""
    async with await open_peer(address, ClientSettings(attempts=1, token=token)) as peer:
        assert peer.description.speaks is PeerSpeaks.SMART
        head = await peer.get_head()
        after = None if known is None else known.head
        packed = [block async for block in peer.iter_blocks(after=after, upto=head.head)]
        blocks = [decode_block(block.raw, expected_hash=None) for block in packed]
        wanted = [item for block in blocks for item in iter_wanted(block.event)]
        with node.objects.writing():
            await peer.fetch_objects(wanted, node.objects)
        objects = {item.hash: node.objects.get_path(item.hash).read_bytes() for item in wanted}
        return Chain(head.name, blocks, objects)


async def push(
    node: TestNode, server: PeerServer, chain: Chain, *, token: str | None = "owner's", force: bool = False
) -> PushOutcome:
    return await push_dataset(
        f"{server.smart}/{chain.name}",
        PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None, replaces_history=force),
        store=node.store,
        objects=node.objects,
        settings=ClientSettings(attempts=1, token=server.token if token == "owner's" else token),
    )


@asynccontextmanager
async def both(tmp_path: Path) -> AsyncIterator[tuple[TestNode, PeerWorkspace, PeerServer]]:
    """Our node, the peer's workspace, and the peer's server over it, with its token."""
    workspace = await PeerWorkspace.create(tmp_path / "workspace")
    async with workspace.serving(with_token=True) as server:
        yield TestNode.create(tmp_path / "home"), workspace, server


# We push to the peer's server, and pull from it what we pushed


@in_loop
async def test_we_push_and_pull_new_datasets_increments_and_nothing_new(tmp_path: Path) -> None:
    async with both(tmp_path) as (node, workspace, server):
        for name in NAMES:
            whole = read_kamu_chain(name)
            first = part_of(whole, max(1, len(whole.blocks) - 2))
            keep(node, first)
            assert (await push(node, server, first)).sent_blocks == len(first.blocks)
            copy = await pull(f"{server.smart}/{name}", TestNode.create(tmp_path / name), token=server.token)
            assert copy.head == first.head
            keep(node, whole)
            outcome = await push(node, server, whole)
            assert outcome.sent_blocks == len(whole.blocks) - len(first.blocks)
            assert (await push(node, server, whole)).was_up_to_date
            if first.head != whole.head:
                place = TestNode.create(tmp_path / name)
                more = await pull(f"{server.smart}/{name}", place, token=server.token, known=first)
                assert [b.raw for b in copy.blocks + more.blocks] == [b.raw for b in whole.blocks]
                assert copy.objects | more.objects == whole.objects
            assert await workspace.find_head(name) == str(whole.head.hash)
            assert "1 dataset(s) are valid" in await workspace.run("verify", name)


@in_loop
async def test_we_are_told_of_another_history_and_replace_it_only_by_force(tmp_path: Path) -> None:
    one, other = forked()
    async with both(tmp_path) as (node, workspace, server):
        keep(node, one)
        await push(node, server, one)
        rival = TestNode.create(tmp_path / "rival")
        keep(rival, other)
        with pytest.raises(PushRejectedError, match="histories have parted"):
            await push(rival, server, other)
        outcome = await push(rival, server, other, force=True)
        assert (outcome.sent_blocks, outcome.known_head) == (4, None)
        assert await workspace.find_head("forked") == str(other.head.hash)
        # What another history looks like to one who has the first: blocks that do not follow it.
        parted = await pull(f"{server.smart}/forked", node, token=server.token, known=one)
        assert [block.raw for block in parted.blocks] == [other.blocks[-1].raw]


@in_loop
async def test_private_datasets_and_pushes_need_the_right_token(tmp_path: Path) -> None:
    chain = read_kamu_chain("upsert.accounts")
    async with both(tmp_path) as (node, _, server):
        keep(node, chain)
        for token in (None, "wrong"):
            with pytest.raises(PeerForbidsError):
                await push(node, server, chain, token=token)
        await push(node, server, chain)
        with pytest.raises(PeerNotFoundError):
            await pull(f"{server.smart}/{chain.name}", node)
        assert (await pull(f"{server.smart}/{chain.name}", node, token=server.token)).head == chain.head
        assert await validate_token(server.url, server.token)
        with pytest.raises(PeerForbidsError):
            await validate_token(server.url, "wrong")


@pytest.mark.parametrize("version", [2, 3])
@in_loop
async def test_chains_of_both_block_versions_go_there_and_back_as_they_are(tmp_path: Path, version: int) -> None:
    chain = chain_of("of.ours", [push_source(), schema(), SetInfo(description="ours")], version=version)
    assert {block.version for block in chain.blocks} == {version}
    async with both(tmp_path) as (node, workspace, server):
        keep(node, chain)
        await push(node, server, chain)
        back = await pull(f"{server.smart}/of.ours", node, token=server.token)
        assert [block.raw for block in back.blocks] == [block.raw for block in chain.blocks]
        async with node.serving() as url:
            other = await PeerWorkspace.create(tmp_path / "other")
            await other.run("pull", f"odf+{url}/of.ours", "--as", "copy", "--no-alias")
        assert await other.find_head("copy") == await workspace.find_head("of.ours") == str(chain.head.hash)


@in_loop
async def test_a_thousand_blocks_go_there_and_back(tmp_path: Path) -> None:
    chain = long_chain(1_000)
    async with both(tmp_path) as (node, _, server):
        keep(node, chain)
        assert (await push(node, server, chain)).sent_blocks == 1_000
        back = await pull(f"{server.smart}/long.chain", node, token=server.token)
        assert [block.raw for block in back.blocks] == [block.raw for block in chain.blocks]
        other = await PeerWorkspace.create(tmp_path / "other")
        async with node.serving() as url:
            await other.run("pull", f"odf+{url}/long.chain", "--as", "copy", "--no-alias")
        assert await other.find_head("copy") == str(chain.head.hash)


# The peer's client at our server


@in_loop
async def test_peer_clones_continues_and_finds_nothing_new(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    async with node.serving() as url:
        for name in NAMES:
            whole = read_kamu_chain(name)
            for end in (max(1, len(whole.blocks) - 2), len(whole.blocks)):
                keep(node, part_of(whole, end))
                for _ in range(2):  # the second time there is nothing new
                    await workspace.run("pull", f"odf+{url}/{name}", "--as", name, "--no-alias")
                assert await workspace.find_head(name) == str(whole.blocks[end - 1].hash)
            assert "1 dataset(s) are valid" in await workspace.run("verify", name)


@in_loop
async def test_peer_is_told_of_another_history_and_takes_it_only_by_force(tmp_path: Path) -> None:
    one, other = forked()
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    rival = TestNode.create(tmp_path / "rival")
    keep(node, one)
    keep(rival, other)
    async with node.serving() as url, rival.serving() as rival_url:
        await workspace.run("pull", f"odf+{url}/forked", "--as", "forked", "--no-alias")
        with pytest.raises(PeerError, match="diverged"):
            await workspace.run("pull", f"odf+{rival_url}/forked", "--as", "forked", "--no-alias")
        await workspace.run("pull", f"odf+{rival_url}/forked", "--as", "forked", "--no-alias", "--force")
    assert await workspace.find_head("forked") == str(other.head.hash)


@in_loop
async def test_peer_does_not_find_what_is_unpublished(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    chain = read_kamu_chain("upsert.accounts")
    node.keep(chain, published=False)
    node.put_token(scopes=(f"push:{chain.id}",))
    async with node.serving() as url:
        with pytest.raises(PeerError, match=r"[Nn]ot found|does not exist"):
            await workspace.run("pull", f"odf+{url}/{chain.name}", "--as", "copy", "--no-alias")
        # Who may write it may read it.
        await workspace.run("login", "--access-token", TOKEN, url)
        await workspace.run("pull", f"odf+{url}/{chain.name}", "--as", "copy", "--no-alias")
    assert await workspace.find_head("copy") == str(chain.head.hash)


@in_loop
async def test_peer_pushes_new_datasets_increments_and_nothing_new(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    source = TestNode.create(tmp_path / "source")
    node.put_token()
    async with node.serving() as url, source.serving() as source_url:
        await workspace.run("login", "--access-token", TOKEN, url)
        for name in NAMES:
            whole = read_kamu_chain(name)
            for end in sorted({max(1, len(whole.blocks) - 2), len(whole.blocks)}):
                keep(source, part_of(whole, end))
                await workspace.run("pull", f"odf+{source_url}/{name}", "--as", name, "--no-alias")
                for _ in range(2):  # the second time there is nothing new
                    await workspace.run("push", name, "--to", f"odf+{url}/{name}", "--no-alias")
                record = node.store.find_dataset(whole.id)
                assert record is not None
                assert (record.head, record.published) == (part_of(whole, end).head, False)
            for object_hash, data in whole.objects.items():
                assert node.objects.get_path(object_hash).read_bytes() == data


@in_loop
async def test_peer_without_a_token_cannot_push(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    await workspace.run("pull", f"file://{KAMU_DATA / 'empty.seed'}/", "--as", "seed", "--no-alias")
    async with node.serving() as url:
        with pytest.raises(PeerError, match="Unauthenticated"):
            await workspace.run("push", "seed", "--to", f"odf+{url}/seed", "--no-alias")
    assert node.store.list_datasets() == ()


@in_loop
async def test_peer_reads_why_its_push_is_rejected(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    await workspace.run("pull", f"file://{KAMU_DATA / 'upsert.accounts'}/", "--as", "accounts", "--no-alias")
    node.put_token()

    async def rejection(*words: str) -> str:
        with pytest.raises(PeerError) as refused:
            await workspace.run("push", "accounts", "--to", f"odf+{url}/accounts", "--no-alias", *words)
        return str(refused.value)

    async with node.serving() as url:
        await workspace.run("login", "--access-token", TOKEN, url)
        node.receiver.reject_with = RejectedError("ROWS-3 offsets", sequence_number=4)
        assert "block 4 breaks ROWS-3 offsets" in await rejection()
        node.receiver.reject_early_with = RejectedError("ACCEPT-8 own-datasets-are-written-here-only")
        assert "ACCEPT-8 own-datasets-are-written-here-only" in await rejection()
        node.keep(Chain("accounts"))
        assert "Invalid block interval" in await rejection()
        assert "restricted" in await rejection("--force")
    assert [record.head.sequence_number for record in node.store.list_datasets()] == [0]


# The whole way, with the rules: real commands, a real daemon


@in_loop
async def test_what_the_peer_pushes_passes_our_gate_and_loses_nothing(tmp_path: Path) -> None:
    """What another implementation pushes is verified to the last row, and replaced without loss."""
    one, other = forked()
    ours, source = RealNode(tmp_path / "ours"), TestNode.create(tmp_path / "source")
    token = ours.must("token", "create", "peer", "--may-replace").out.strip()
    (ours.home / "policies.yaml").write_text(
        'kind: AcceptPolicies\nversion: 1\nrules:\n  - peers: ["push:"]\n    accept: unsigned\n'
    )
    first = await PeerWorkspace.create(tmp_path / "first")
    second = await PeerWorkspace.create(tmp_path / "second")
    with ours.serving() as url:
        for workspace in (first, second):
            await workspace.run("login", "--access-token", token, url)
        async with source.serving() as source_url:
            keep(source, read_kamu_chain("ledger.transactions"))
            await first.run(
                "pull", f"odf+{source_url}/ledger.transactions", "--as", "ledger.transactions", "--no-alias"
            )
            keep(source, one)
            await first.run("pull", f"odf+{source_url}/forked", "--as", "forked", "--no-alias")
            source.store.delete_dataset(one.id)
            keep(source, other)
            await second.run("pull", f"odf+{source_url}/forked", "--as", "forked", "--no-alias")
        for name in ("ledger.transactions", "forked"):
            await first.run("push", name, "--to", f"odf+{url}/{name}", "--no-alias", "--visibility", "public")
        with pytest.raises(PeerError, match="Invalid block interval"):
            await second.run("push", "forked", "--to", f"odf+{url}/forked", "--no-alias")
        await second.run("push", "forked", "--to", f"odf+{url}/forked", "--no-alias", "--force")
        listed = {entry["name"]: entry for entry in (await in_thread(ours, "list", "-o", "json")).json()}
        assert {name: entry["trust"] for name, entry in listed.items()} == dict.fromkeys(listed, "unsigned")
        (history,) = (await in_thread(ours, "inspect", "histories", "forked", "-o", "json")).json()
        assert history["blocks"] == [str(one.head.hash)]
        assert history["replacedBy"] == str(other.head.hash)
    assert (await in_thread(ours, "verify", "ledger.transactions", "forked")).code == 0


@in_loop
async def test_what_we_pull_from_the_peer_is_unsigned_and_verified(tmp_path: Path) -> None:
    copy, first = RealNode(tmp_path / "copy"), await PeerWorkspace.create(tmp_path / "first")
    await first.run("pull", f"file://{KAMU_DATA / 'ledger.transactions'}/", "--as", "ledger.transactions", "--no-alias")
    async with first.serving(with_token=True) as server:
        address = f"{server.smart}/ledger.transactions"
        assert (await in_thread(copy, "login", server.url, "--access-token", server.token)).code == 0
        assert (await in_thread(copy, "pull", address)).code == 4  # nobody signed it
        assert (await in_thread(copy, "pull", address, "--policy", "unsigned")).code == 0
        assert (await in_thread(copy, "pull", address, "--policy", "unsigned")).code == 0
        assert (await in_thread(copy, "logout", server.url)).code == 0
    assert (await in_thread(copy, "verify", "ledger.transactions")).code == 0


async def in_thread(node: RealNode, *words: str) -> RanCommand:
    return await asyncio.to_thread(node.run, *words)
