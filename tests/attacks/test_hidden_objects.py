"""Named attacks of a stranger who knows the hashes of hidden objects: over real sockets, against a real node.

After each of them the node holds what it held, and the hidden bytes were given to nobody (EX-80 to EX-85).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from odf_node.acceptance.offers import EVERYTHING, AcceptOptions, Subset
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.peer_addresses import open_peer
from odf_node.errors import ObjectsAbsentError
from odf_node.exchange.taking import PullRequest
from odf_node.http.callers import secret_hash_of
from odf_node.ports.peer_errors import PeerNotFoundError
from odf_node.ports.progress import Silence
from odf_node.ports.pushes import PushedHead
from odf_node.records.access import AccessToken
from odf_protocol.errors import OdfError
from odf_protocol.events import AddData, Checkpoint, DatasetKind, ExecuteTransform, ExecuteTransformInput, Seed
from odf_protocol.exchange.packs import decode_pack
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy, Trust
from odf_smart.pushing import SmartPush
from support.event_loop import LIMIT_S
from support.exchange_nodes import TestNode
from support.hostile_peer import hostile_peer
from support.lying_peer import Lie
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain, select
from support.secretive_node import FRIEND_TOKEN, PUSHES, THIEF_TOKEN, SecretiveNode, Stranger, without_files
from support.signing import OTHER_KEY
from support.stores import find_named

Attack = Callable[[SecretiveNode, Stranger], Awaitable[None]]
PLACES = (
    "/{n}/data/{h}",
    "/{n}/checkpoints/{h}",
    "/_odf/v1/datasets/{n}/trees/{h}",
    "/_odf/v1/datasets/{n}/leaves/{h}",
)
RECORD = b"names files of its inputs"
METADATA = AcceptOptions(published=True, force=False, subset=Subset.METADATA_ONLY)


@pytest.fixture
def secretive(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path)
    with closing(made.node):
        yield made


async def give_nothing(secretive: SecretiveNode, stranger: Stranger) -> None:
    """Check that no address gives a byte of the hidden objects, or says that they are here."""
    for name in ("thief", "hidden.data", str(secretive.hidden.id), "shown.data"):
        for object_hash in secretive.files:
            absent = Multihash.of_sha3_256(b"nobody has this")
            for place in PLACES:
                found = await stranger.ask("GET", place.format(n=name, h=object_hash))
                assert found.status == 404, (place, found)
                other = await stranger.ask("GET", place.format(n=name, h=absent))
                if name != "thief":
                    assert found.body.replace(str(object_hash).encode(), b"H") == other.body.replace(
                        str(absent).encode(), b"H"
                    )


def allow_pushes(secretive: SecretiveNode, chain: PeerChain) -> str:
    """Give a token that allows pushes of a dataset, and nothing else."""
    secret = f"odf_pusher_{chain.id.public_key.hex()[:8]}"
    scopes = (f"push:{chain.id}",)
    secretive.node.store.put_token(
        AccessToken(id=secret[-8:], secret_hash=secret_hash_of(secret), label="", scopes=scopes, created_at=NOW)
    )
    return secret


async def pull(secretive: SecretiveNode, chain: PeerChain, pull_options: AcceptOptions = EVERYTHING) -> Any:
    lie = Lie(chain)
    async with (
        hostile_peer({"": lie}) as liar,
        await open_peer(f"{liar.url}/thief", ClientSettings(attempts=1)) as peer,
    ):
        return await secretive.node.taking.take(
            peer, PullRequest(url=f"{liar.url}/thief", name="thief", policy=Policy.INTEGRITY, pull_options=pull_options)
        )


async def push_that_names_a_hidden_object(secretive: SecretiveNode, stranger: Stranger) -> None:
    state = (await stranger.begin_with_blocks(secretive.thief)).json()
    assert {item["object_hash"] for item in state["missing"]} == set(map(str, secretive.files))
    for object_hash in secretive.files:
        progress = await stranger.ask("GET", f"{PUSHES}/{state['push_id']}/objects/{object_hash}")
        assert progress.json()["position"] == 0
    committed = await stranger.finish(state["push_id"])
    assert (committed.status, committed.json()["rule"]) == (422, "EX-20 all-objects")


async def push_whose_last_bytes_are_hidden(secretive: SecretiveNode, stranger: Stranger) -> None:
    """Half of an object that somebody else begins to bring is no half for this one."""
    first = secretive.files[0]
    node = secretive.node
    with node.objects.writing(), node.objects.resume(first) as operators:
        operators.write(secretive.hidden.files[first][:100])
        state = (await stranger.begin_with_blocks(secretive.thief)).json()
        place = f"{PUSHES}/{state['push_id']}/objects/{first}"
        assert (await stranger.ask("GET", place)).json()["position"] == 0
        rest = await stranger.ask("PUT", f"{place}?position=100", secretive.hidden.files[first][100:])
        assert (rest.status, rest.json()["position"]) == (409, 0)
    node.objects.sweep(node.store.list_referenced_objects, now=node.clock.now(), keep_arrived=False)


async def checkpoint_that_is_a_hidden_slice(secretive: SecretiveNode, stranger: Stranger) -> None:
    first = secretive.files[0]
    size = len(secretive.hidden.files[first])
    chain = root_chain(secretive.thief.folder, slices=0, key=OTHER_KEY, name="thief")
    chain.add(AddData(prev_offset=None, new_checkpoint=Checkpoint(physical_hash=first, size=size)))
    state = (await stranger.begin_with_blocks(chain)).json()
    assert state["missing"] == [{"kind": "checkpoints", "object_hash": str(first), "size_bytes": size}]
    assert (await stranger.finish(state["push_id"])).status == 422


async def rejection_tells_size(secretive: SecretiveNode, stranger: Stranger) -> None:
    first = secretive.files[0]
    size = str(len(secretive.hidden.files[first])).encode()

    def other_size(event: Any) -> Any:
        return replace(event, new_data=replace(event.new_data, size=7))

    chain = secretive.thief.up_to(2).replacing(2, other_size)
    state = await stranger.begin_with_blocks(chain)
    place = f"{PUSHES}/{state.json()['push_id']}"
    sent = await stranger.ask("PUT", f"{place}/objects/{first}", b"1234567")
    committed = await stranger.finish(state.json()["push_id"])
    assert (sent.status, committed.status) == (422, 422)
    assert all(size not in answer.body for answer in (state, sent, committed))


async def smart_push_missing_list_tells(secretive: SecretiveNode, stranger: Stranger) -> None:
    """Whoever has all bytes is asked for all of them; whoever has none brings nothing about."""
    here = TestNode.create(secretive.thief.folder / "here")
    chain = secretive.thief
    import support.offers as offers

    offers.PublisherHome(offers.Judge.create(here.home.path)).keep(chain)
    for object_hash in secretive.files:
        here.objects.delete(object_hash)
        with here.objects.stage() as staged:
            staged.write(b"something else of the same length"[: len(chain.files[object_hash])])
            here.objects.put(staged, staged.hash)
    proposed = PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None)
    async with HttpClient(ClientSettings(attempts=1, token=stranger.token)) as client:
        url = URL(f"{stranger.url}/thief/")
        # It is asked for objects that it does not have; where they were skipped, it would be accepted.
        with pytest.raises(OdfError, match="is not in this node"):
            await SmartPush(client, url, proposed, here.store, here.objects, None).run()


async def pull_of_a_chain_that_names_a_hidden_object(secretive: SecretiveNode, stranger: Stranger) -> None:
    with pytest.raises(PeerNotFoundError):
        await pull(secretive, without_files(secretive.thief))


async def tree_of_a_hidden_object(secretive: SecretiveNode, stranger: Stranger) -> None:
    """A chain that was taken on its metadata alone has none of the files that it names."""
    report = await pull(secretive, without_files(secretive.thief), METADATA)
    assert report.record.trust is Trust.METADATA
    await give_nothing(secretive, stranger)
    with pytest.raises(ObjectsAbsentError):
        await secretive.node.bringing.bring(report.record, None, Silence())
    await give_nothing(secretive, stranger)
    secretive.node.deletion.delete(report.record)


async def query_over_a_hidden_dataset(secretive: SecretiveNode, stranger: Stranger) -> None:
    """A derivative with made-up figures: its rejection would show those that it really has."""
    hidden, absent = secretive.hidden.id, root_chain(secretive.thief.folder, key=b"\x55" * 32).id
    refusals = []
    for source in (hidden, absent):
        chain = PeerChain(secretive.thief.folder, key=OTHER_KEY, name="thief")
        chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
        chain.add(select("SELECT * FROM in0", source))
        state = (await stranger.begin_with_blocks(chain)).json()
        ended = await stranger.finish(state["push_id"])
        refusals.append(ended.body.replace(str(source).encode(), b"SOURCE"))
        assert ended.json()["status"] == "refused"
    import re

    plain = [re.sub(rb'"push_id":"[^"]*"|"id":"[^"]*"|f1620[0-9a-f]{64}', b"", body) for body in refusals]
    assert plain[0] == plain[1]


async def name_that_a_hidden_dataset_has(secretive: SecretiveNode, stranger: Stranger) -> None:
    """A name is no proof of what has it: whoever pushes under it finds what they pushed under it."""
    upgraded = [await stranger.ask("GET", f"/{name}/push") for name in ("hidden.data", "absent.data")]
    assert upgraded[0] == upgraded[1]
    other = root_chain(secretive.thief.folder, key=b"\x66" * 32, slices=0)
    seen = []
    for name, chain in (("Hidden.data", secretive.thief), ("absent.data", other)):
        stranger.token = allow_pushes(secretive, chain)
        state = (await stranger.begin_with_blocks(chain, name=name)).json()
        for object_hash, content in chain.files.items():
            await stranger.ask("PUT", f"{PUSHES}/{state['push_id']}/objects/{object_hash}", content)
        assert (await stranger.finish(state["push_id"])).json()["status"] == "accepted"
        heads = [await stranger.ask("GET", f"/{each}/refs/head") for each in (name, str(chain.id))]
        assert [head.body for head in heads] == [str(chain.head.hash).encode()] * 2
        listed = (await stranger.ask("GET", "/_odf/v1/datasets")).json()["datasets"]
        seen.append((state["known_head"], [each["name"] for each in listed if each["dataset_id"] == str(chain.id)]))
        stranger.token = None
        assert (await stranger.ask("GET", f"/{name}/refs/head")).body == str(chain.head.hash).encode()
    assert seen == [(None, ["Hidden.data"]), (None, ["absent.data"])]
    store = secretive.node.store
    assert find_named(store, "hidden.data").id == secretive.hidden.id
    for chain in (secretive.thief, other):
        secretive.node.deletion.delete(store.find_dataset(chain.id))


async def step_record_names_hidden_slices(secretive: SecretiveNode, stranger: Stranger) -> None:
    """A published derivative of the hidden dataset: whoever may not read that gets its blocks without the records."""
    chain = derivative_of(secretive)
    secretive.node.store.set_published(chain.id, True)
    packs = {}
    for token in (None, THIEF_TOKEN, FRIEND_TOKEN):
        found = await replace(stranger, token=token).ask("GET", f"/_odf/v1/datasets/{chain.id}/blocks?after=-1")
        packs[token] = [block.step_record for block in decode_pack(found.body)], found.headers["Etag"]
    assert packs[None] == packs[THIEF_TOKEN] == ([None] * 3, packs[None][1])
    assert (packs[FRIEND_TOKEN][0][-1], packs[FRIEND_TOKEN][1]) == (RECORD, packs[None][1].replace("-bare", ""))
    secretive.node.store.set_published(secretive.hidden.id, True)
    found = await replace(stranger, token=None).ask("GET", f"/_odf/v1/datasets/{chain.id}/blocks?after=-1")
    assert decode_pack(found.body)[-1].step_record == RECORD
    secretive.node.store.set_published(secretive.hidden.id, False)  # hidden later
    found = await replace(stranger, token=None).ask("GET", f"/_odf/v1/datasets/{chain.id}/blocks?after=-1")
    assert decode_pack(found.body)[-1].step_record is None
    record = secretive.node.store.find_dataset(chain.id)
    assert record is not None
    secretive.node.deletion.delete(record)


def derivative_of(secretive: SecretiveNode) -> PeerChain:
    """Hold a derivative of the hidden dataset with one step, and a record of it, whatever that says."""
    hidden = secretive.hidden
    chain = PeerChain(hidden.folder, key=b"\x77" * 32, name="derived.data")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)).add(select("SELECT 1", hidden.id))
    read = ExecuteTransformInput(dataset_id=hidden.id, new_block_hash=hidden.head.hash, new_offset=5)
    chain.add(ExecuteTransform(query_inputs=(read,), new_watermark=NOW), step_record=RECORD)
    PublisherHome(Judge(secretive.node.home.folder, secretive.node.engines)).keep(chain)
    return chain


async def cache_between_a_friend_and_others(secretive: SecretiveNode, stranger: Stranger) -> None:
    friend = replace(stranger, token=FRIEND_TOKEN)
    for path in (f"/hidden.data/data/{secretive.files[0]}", "/hidden.data/refs/head"):
        found = await friend.ask("GET", path)
        assert (found.status, found.headers["Cache-Control"].split(",")[0]) == (200, "private")
    plain = await replace(stranger, token=None).ask("GET", "/shown.data/refs/head")
    assert "private" not in plain.headers["Cache-Control"]


ATTACKS: dict[str, Attack] = {
    "push-that-names-a-hidden-object": push_that_names_a_hidden_object,
    "push-whose-last-bytes-are-hidden": push_whose_last_bytes_are_hidden,
    "checkpoint-that-is-a-hidden-slice": checkpoint_that_is_a_hidden_slice,
    "refusal-tells-size": rejection_tells_size,
    "smart-push-missing-list-tells": smart_push_missing_list_tells,
    "pull-of-a-chain-that-names-a-hidden-object": pull_of_a_chain_that_names_a_hidden_object,
    "tree-of-a-hidden-object": tree_of_a_hidden_object,
    "replay-record-names-hidden-slices": step_record_names_hidden_slices,
    "query-over-a-hidden-dataset": query_over_a_hidden_dataset,
    "name-that-a-hidden-dataset-has": name_that_a_hidden_dataset_has,
    "cache-between-a-friend-and-others": cache_between_a_friend_and_others,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_brings_no_hidden_byte_and_changes_nothing(secretive: SecretiveNode, name: str) -> None:
    before = secretive.holdings()

    async def story() -> None:
        async with asyncio.timeout(LIMIT_S), secretive.served() as stranger:
            await ATTACKS[name](secretive, stranger)
            assert secretive.holdings() == before
            await give_nothing(secretive, stranger)
            assert (await stranger.ask("GET", "/shown.data/refs/head")).status == 200

    asyncio.run(story())


def test_whoever_brings_the_bytes_is_accepted(secretive: SecretiveNode) -> None:
    """The other way round: the same chain from somebody who has the files."""

    async def story() -> None:
        async with asyncio.timeout(LIMIT_S), secretive.served() as stranger:
            state = (await stranger.begin_with_blocks(secretive.thief)).json()
            for object_hash, content in secretive.thief.files.items():
                sent = await stranger.ask("PUT", f"{PUSHES}/{state['push_id']}/objects/{object_hash}", content)
                assert sent.status == 201
            assert (await stranger.finish(state["push_id"])).json()["status"] == "accepted"
            found = await stranger.ask("GET", f"/thief/data/{secretive.files[0]}")
            assert found.body == secretive.thief.files[secretive.files[0]]

    asyncio.run(story())


def test_each_attack_has_its_line_in_the_threats() -> None:
    text = (Path(__file__).parents[2] / "spec/threats.md").read_text()
    assert [name for name in ATTACKS if f"`{name}`" not in text] == []
