"""Every reading route, over real sockets, from a real store (EX-1 to EX-10, EX-14, EX-16, EX-88)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from odf_node.configuration import Configuration, LimitSettings
from odf_node.http.served_node import Live
from odf_node.records.evidence import HeldAttestation
from odf_protocol.did import DidKey
from odf_protocol.exchange.packs import PACK_MEDIA_TYPE, PackedBlock, decode_pack
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from support.event_loop import in_loop
from support.exchange_nodes import NODE_ID, NOON, Chain, TestNode

SLICE = bytes(range(256)) * 40
CHECKPOINT = b"state"


def demo_chain() -> Chain:
    chain = Chain("demo.data").add(SLICE, CHECKPOINT).add(b"second slice")
    chain.signatures = {0: b"signature 0", 2: b"signature 2"}
    chain.step_records = {1: b"record 1"}
    return chain


@asynccontextmanager
async def served(tmp_path: Path, *chains: Chain) -> AsyncIterator[tuple["Client", TestNode]]:
    node = TestNode.create(tmp_path / "home")
    for chain in chains or (demo_chain(),):
        node.keep(chain)
    async with node.serving() as url, aiohttp.ClientSession() as session:
        yield Client(session, url), node


class Client:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def ask(self, path: str, method: str = "GET", **headers: str) -> "Got":
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        # Encoded as it stands: the tests write paths that a client would tidy up.
        async with self.session.request(method, URL(self.url + path, encoded=True), headers=named) as answer:
            return Got(answer.status, answer.headers, await answer.read())


class Got:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def word(self) -> str:
        assert self.headers["Content-Type"].startswith("application/problem+json")
        return str(self.json()["type"]).removeprefix("urn:odf-node:problem:")


@in_loop
async def test_anybody_reads_what_the_routes_are_as_the_specification_has_them_ex_88(tmp_path: Path) -> None:
    described = Path(__file__).parents[3].joinpath("spec/schemas/openapi.yaml").read_bytes()
    async with served(tmp_path) as (client, _):
        whole = await client.ask("/openapi.yaml")
        assert (whole.status, whole.body) == (200, described)
        assert whole.headers["Content-Type"] == "application/yaml"
        head = await client.ask("/openapi.yaml", "HEAD")
        assert (head.status, head.headers["Content-Length"], head.body) == (200, str(len(described)), b"")
        assert (await client.ask("/openapi.yaml", If_None_Match=whole.headers["ETag"])).status == 304
        assert (await client.ask("/openapi.yaml/x")).status == 404


@in_loop
async def test_plain_client_finds_head_blocks_slices_and_checkpoints(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        chain = demo_chain()
        head = await client.ask("/demo.data/refs/head")
        assert head.body == str(chain.head.hash).encode()  # 69 bytes, no newline
        assert len(head.body) == 69
        for block in chain.blocks:
            assert (await client.ask(f"/demo.data/blocks/{block.hash}")).body == block.raw
        assert (await client.ask(f"/demo.data/data/{Multihash.of_sha3_256(SLICE)}")).body == SLICE
        assert (await client.ask(f"/demo.data/checkpoints/{Multihash.of_sha3_256(CHECKPOINT)}")).body == CHECKPOINT
        assert (await client.ask("/info")).json() == {"isMultiTenant": False}
        assert (await client.ask(f"/datasets/{chain.id}")).json() == {
            "id": str(chain.id),
            "datasetName": "demo.data",
            "owner": None,
        }


@in_loop
async def test_dataset_is_found_by_identity_as_by_name(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        by_id = await client.ask(f"/_odf/v1/datasets/{demo_chain().id}/head")
        assert by_id.json() == (await client.ask("/_odf/v1/datasets/demo.data/head")).json()
        assert (await client.ask(f"/{demo_chain().id}/refs/head")).status == 200
        assert (await client.ask("/Demo.DATA/refs/head")).status == 200


@in_loop
async def test_hash_in_another_multibase_names_the_same_block(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        upper = "F" + str(demo_chain().head.hash)[1:].upper()
        assert (await client.ask(f"/demo.data/blocks/{upper}")).body == demo_chain().blocks[-1].raw


@pytest.mark.parametrize("ask_for_part", [True, False], ids=["part", "whole"])
@pytest.mark.parametrize("path", ["blocks", "data", "refs"])
@in_loop
async def test_client_that_has_it_is_told_so(tmp_path: Path, path: str, ask_for_part: bool) -> None:
    async with served(tmp_path) as (client, _):
        hashes = {"blocks": demo_chain().head.hash, "data": Multihash.of_sha3_256(SLICE)}
        where = f"/demo.data/{path}/{hashes.get(path, 'head')}"
        first = await client.ask(where)
        part = {"Range": "bytes=0-1"} if ask_for_part else {}
        again = await client.ask(where, If_None_Match=first.headers["ETag"], **part)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        other = await client.ask(where, If_None_Match='"another"')
        assert other.body == first.body


@in_loop
async def test_objects_may_be_kept_for_ever_and_heads_must_be_asked_for_again(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        kept = await client.ask(f"/demo.data/data/{Multihash.of_sha3_256(SLICE)}")
        assert "immutable" in kept.headers["Cache-Control"]
        assert (await client.ask("/demo.data/refs/head")).headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=0-99", 0, 100), ("bytes=10200-", 10_200, 10_240), ("bytes=-7", 10_233, 10_240), ("bytes=5-5", 5, 6)],
)
@in_loop
async def test_part_of_an_object_is_sent(tmp_path: Path, asked: str, start: int, end: int) -> None:
    async with served(tmp_path) as (client, _):
        got = await client.ask(f"/demo.data/data/{Multihash.of_sha3_256(SLICE)}", Range=asked)
        assert (got.status, got.body) == (206, SLICE[start:end])
        assert got.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(SLICE)}"


@in_loop
async def test_range_beyond_the_end_is_answered_with_the_size(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        got = await client.ask(f"/demo.data/data/{Multihash.of_sha3_256(SLICE)}", Range="bytes=10240-")
        assert (got.status, got.word) == (416, "range")
        assert got.headers["Content-Range"] == "bytes */10240"


@in_loop
async def test_several_ranges_or_an_outdated_condition_give_the_whole_object(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        where = f"/demo.data/data/{Multihash.of_sha3_256(SLICE)}"
        assert (await client.ask(where, Range="bytes=0-1,5-6")).body == SLICE
        assert (await client.ask(where, Range="bytes=0-1", If_Range='"another"')).body == SLICE
        fitting = f'"{Multihash.of_sha3_256(SLICE)}"'
        assert (await client.ask(where, Range="bytes=0-1", If_Range=fitting)).body == SLICE[:2]


@in_loop
async def test_head_request_gives_the_headers_of_get_and_no_body(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        slice_hash = Multihash.of_sha3_256(SLICE)
        for path in (f"/demo.data/data/{slice_hash}", "/demo.data/refs/head", "/_odf/v1/datasets/demo.data/head"):
            got, head = await client.ask(path), await client.ask(path, "HEAD", Range="bytes=0-1")
            assert (head.status, head.body) == (200, b"")
            assert head.headers["Content-Length"] == got.headers["Content-Length"]


@in_loop
async def test_empty_object_is_sent_as_such(tmp_path: Path) -> None:
    async with served(tmp_path, Chain("demo.data").add(b"")) as (client, _):
        got = await client.ask(f"/demo.data/data/{Multihash.of_sha3_256(b'')}")
        assert (got.status, got.body, got.headers["Content-Length"]) == (200, b"", "0")


@in_loop
async def test_unpublished_absent_and_impossible_datasets_get_the_same_answer(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        hidden = Chain("hidden.data").add(b"secret rows")
        node.keep(hidden, published=False)
        secret = Multihash.of_sha3_256(b"secret rows")
        routes = [
            "/{}/refs/head",
            f"/{{}}/blocks/{hidden.head.hash}",
            f"/{{}}/data/{secret}",
            f"/{{}}/checkpoints/{secret}",
            "/datasets/{}",
            "/_odf/v1/datasets/{}/head",
            "/_odf/v1/datasets/{}/blocks",
            "/_odf/v1/datasets/{}/hash?number=0",
            "/_odf/v1/datasets/{}/attestations",
        ]
        for route in routes:
            answers = []
            for name in ("hidden.data", str(hidden.id), "absent.data", "no-name-", "did:odf:fed01", "..%2f..%2fetc"):
                got = await client.ask(route.format(name))
                reported = {key: value for key, value in got.json().items() if key != "instance"}
                answers.append((got.status, reported))
            assert answers[0][0] == 404
            assert all(answer == answers[0] for answer in answers), route
        # ... nor through the list, nor below another dataset.
        assert "hidden" not in (await client.ask("/_odf/v1/datasets")).body.decode()
        assert (await client.ask(f"/demo.data/data/{secret}")).status == 404
        assert (await client.ask(f"/demo.data/blocks/{hidden.head.hash}")).status == 404


@in_loop
async def test_object_that_no_block_names_is_not_served(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        with node.objects.writing():
            node.put_objects([b"rows in quarantine"])
        assert (await client.ask(f"/demo.data/data/{Multihash.of_sha3_256(b'rows in quarantine')}")).status == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/demo.data/data/../../odf-node.sqlite", 404),
        ("/demo.data/data/..%2f..%2fodf-node.sqlite", 400),
        ("/demo.data/data/%2e%2e", 400),
        ("/demo.data/blocks/%00", 400),
        ("/demo.data/blocks/f1620", 400),
        ("/demo.data/blocks/" + "f" * 5000, 400),
        ("/..%2f/refs/head", 404),
        ("/demo.data/refs/master", 404),
        ("/demo.data/refs/..%2fhead", 404),
        ("/demo.data/info/alias", 404),
        ("//demo.data/refs/head", 404),
        ("/%F0%9F%92%A9/refs/head", 404),
        ("/_odf/v2/node", 404),
        ("/_odf/v1/datasets/demo.data/blocks?after=x", 400),
        ("/_odf/v1/datasets/demo.data/blocks?after=1&after=2", 400),
        ("/_odf/v1/datasets/demo.data/blocks?after=99999999999999999999", 400),
        (f"/demo.data/data/{Multihash(ARROW0_SHA3_256, bytes(32))}", 404),
    ],
)
@in_loop
async def test_path_that_leads_nowhere_is_a_problem_and_no_fault(tmp_path: Path, path: str, status: int) -> None:
    async with served(tmp_path) as (client, _):
        got = await client.ask(path)
        assert got.status == status
        assert str(tmp_path) not in got.body.decode()
        assert got.json()["instance"] == f"urn:odf-node:request:{got.headers['X-Request-Id']}"


@in_loop
async def test_method_that_a_route_does_not_know_is_rejected(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        got = await client.ask("/demo.data/refs/head", "PUT")
        assert (got.status, got.word) == (405, "method-not-allowed")
        assert got.headers["Allow"] == "GET,HEAD"


@in_loop
async def test_node_says_who_it_is_and_what_it_speaks(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        assert (await client.ask("/_odf/v1/node")).json() == {
            "node_id": str(NODE_ID),
            "protocol_versions": [1],
            "software": "odf-node/test",
            "takes_pushes": True,
        }


@in_loop
async def test_published_datasets_are_listed_with_their_heads(tmp_path: Path) -> None:
    async with served(tmp_path, Chain("b"), demo_chain()) as (client, _):
        listed = (await client.ask("/_odf/v1/datasets")).json()
        assert [item["name"] for item in listed["datasets"]] == ["b", "demo.data"]
        assert listed["next_after"] is None
        demo = listed["datasets"][1]
        assert demo["head"] == {"sequence_number": 2, "block_hash": str(demo_chain().head.hash)}
        assert (demo["kind"], demo["trust"]) == ("Root", "own")
        rest = (await client.ask("/_odf/v1/datasets?after=b")).json()
        assert [item["name"] for item in rest["datasets"]] == ["demo.data"]


@in_loop
async def test_head_comes_with_the_document_that_vouches_for_it(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        answer = (await client.ask("/_odf/v1/datasets/demo.data/head")).json()
        assert answer["signed_head"] == "c2lnbmVk"
        assert answer["head"]["sequence_number"] == 2
        node.keep(demo_chain().add(b"third"), signed_head=None)
        answer = (await client.ask("/_odf/v1/datasets/demo.data/head")).json()
        assert (answer["signed_head"], answer["head"]["sequence_number"]) == (None, 3)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [0, 1, 2]),
        ("?after=0", [1, 2]),
        ("?after=0&upto=1", [1]),
        ("?after=-5&upto=99", [0, 1, 2]),
        ("?after=2", []),
        ("?after=77", []),
    ],
)
@in_loop
async def test_pack_holds_the_blocks_asked_for_with_what_belongs_to_them(
    tmp_path: Path, query: str, numbers: list[int]
) -> None:
    async with served(tmp_path) as (client, _):
        got = await client.ask(f"/_odf/v1/datasets/demo.data/blocks{query}")
        assert got.headers["Content-Type"] == PACK_MEDIA_TYPE
        chain = demo_chain()
        assert decode_pack(got.body) == tuple(
            PackedBlock(chain.blocks[n].raw, chain.signatures.get(n), chain.step_records.get(n)) for n in numbers
        )
        assert (
            await client.ask(f"/_odf/v1/datasets/demo.data/blocks{query}", If_None_Match=got.headers["ETag"])
        ).status == 304


@in_loop
async def test_hash_of_a_block_is_told_by_its_number(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        for number, block in enumerate(demo_chain().blocks):
            got = await client.ask(f"/_odf/v1/datasets/demo.data/hash?number={number}")
            assert got.json() == {"block_hash": str(block.hash)}
        for number in (3, -1, 999_999_999):
            assert (await client.ask(f"/_odf/v1/datasets/demo.data/hash?number={number}")).json() == {
                "block_hash": None
            }
        assert (await client.ask("/_odf/v1/datasets/demo.data/hash?number=x")).word == "malformed"


@in_loop
async def test_attestations_come_in_pages_in_order_of_arrival(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        chain = demo_chain()
        documents = [b"attestation %d" % n for n in range(3)] + [b"x" * 1_500_000, b"y" * 1_500_000, b"last"]
        for raw in documents:
            node.store.put_attestation(
                HeldAttestation(
                    id=Multihash.of_sha3_256(raw),
                    dataset_id=chain.id,
                    first_sequence_number=1,
                    last_sequence_number=2,
                    last_block_hash=chain.head.hash,
                    attester=DidKey(bytes(32)),
                    raw=raw,
                    received_at=NOON,
                )
            )
        first = (await client.ask("/_odf/v1/datasets/demo.data/attestations")).json()
        assert (len(first["attestations"]), first["next_skip"]) == (4, 4)
        second = (await client.ask("/_odf/v1/datasets/demo.data/attestations?skip=4")).json()
        assert (len(second["attestations"]), second["next_skip"]) == (2, None)


@in_loop
async def test_node_is_alive_and_ready(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        assert (await client.ask("/_odf/v1/health")).json() == {"status": "alive"}
        assert (await client.ask("/_odf/v1/ready")).json() == {"status": "ready"}


@in_loop
async def test_node_with_a_damaged_store_is_alive_and_not_ready(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        node.store.close()
        for name in ("odf-node.sqlite-wal", "odf-node.sqlite-shm"):
            (node.home.path / name).unlink(missing_ok=True)
        node.home.database.write_bytes(b"rubbish" * 1000)
        got = await client.ask("/_odf/v1/ready")
        assert (got.status, got.word) == (500, "broken")
        assert "sqlite" not in got.body.decode()
        assert (await client.ask("/_odf/v1/health")).status == 200


@in_loop
async def test_home_that_nobody_wrote_to_serves_nothing_and_stays_absent(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    async with node.serving() as url, aiohttp.ClientSession() as session:
        client = Client(session, url)
        assert (await client.ask("/_odf/v1/datasets")).json() == {"datasets": [], "next_after": None}
        assert (await client.ask("/demo.data/refs/head")).status == 404
        assert (await client.ask("/_odf/v1/ready")).status == 200
    assert not node.home.path.exists()


@in_loop
async def test_requests_beyond_the_limit_are_turned_away_and_others_go_on(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    node.keep(demo_chain())
    live = Live(Configuration(limits=LimitSettings(requests=0)))
    async with node.serving(live=live) as url, aiohttp.ClientSession() as session:
        got = await Client(session, url).ask("/_odf/v1/health")
        assert (got.status, got.word, got.headers["Retry-After"]) == (503, "busy", "2")


@in_loop
async def test_unexpected_failure_is_answered_without_its_reason(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        node.store.find_readable = lambda which, reads: 1 / 0  # type: ignore[method-assign,assignment,return-value]
        got = await client.ask("/demo.data/refs/head")
        assert (got.status, got.word) == (500, "fault")
        assert "division" not in got.body.decode()


@in_loop
async def test_headers_beyond_the_limit_are_rejected(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        got = await client.ask("/_odf/v1/health", X_Long="x" * 100_000)
        assert got.status == 400


@in_loop
async def test_what_is_no_http_gets_a_short_answer(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        address = URL(client.url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        got = await reader.read()
        assert got.startswith(b"HTTP/1.0 400 ")
        assert b"Traceback" not in got
        writer.close()


@in_loop
async def test_object_that_shrank_on_disk_ends_the_connection_instead_of_sending_less(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, node):
        slice_hash = Multihash.of_sha3_256(SLICE)
        real_size = node.objects.get_size
        node.objects.get_size = lambda object_hash: real_size(object_hash) + 1  # type: ignore[method-assign]
        with pytest.raises(aiohttp.ClientPayloadError):
            await client.ask(f"/demo.data/data/{slice_hash}")


@in_loop
async def test_connections_beyond_the_limit_are_closed_and_others_go_on(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    async with node.serving(live=Live(Configuration(limits=LimitSettings(connections=2)))) as url:
        address = URL(url)
        opened = [await asyncio.open_connection(address.host, address.port) for _ in range(4)]
        assert [await reader.read(1) for reader, _ in opened[2:]] == [b"", b""]
        for reader, writer in opened[:2]:
            writer.write(b"GET /_odf/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for _, writer in opened:
            writer.close()
