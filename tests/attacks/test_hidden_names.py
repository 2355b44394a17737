"""Pushers who would learn from what becomes of their own dataset that a name is one of a hidden dataset (EX-85)."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odf_node.http.callers import secret_hash_of
from odf_node.keys.disputes import Disputes
from odf_node.records.access import AccessToken
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from support.event_loop import in_loop
from support.offers import NOW, PeerChain, root_chain
from support.secretive_node import SecretiveNode, Stranger

SECRET = "odf_owner_of_two_0123456789"
FIRST, SECOND = b"\x66" * 32, b"\x67" * 32


@pytest.fixture(params=[True, False], ids=["hidden", "absent"])
def secretive(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SecretiveNode]:
    made = SecretiveNode.create(tmp_path, holds_it=request.param)
    with closing(made.node):
        yield made


def allow(secretive: SecretiveNode, *chains: PeerChain) -> None:
    scopes = tuple(f"push:{chain.id}" for chain in chains)
    token = AccessToken(id="owner", secret_hash=secret_hash_of(SECRET), label="", scopes=scopes, created_at=NOW)
    secretive.node.store.put_token(token)


async def push(stranger: Stranger, chain: PeerChain, name: str) -> Any:
    """Push a chain without files, and give how that ended."""
    begun = await stranger.begin_with_blocks(chain, name=name)
    if begun.status != 200:
        return begun.json()
    return (await stranger.finish(begun.json()["push_id"])).json()


def chain_of(secretive: SecretiveNode, key: bytes) -> PeerChain:
    return root_chain(secretive.thief.folder, key=key, slices=0, name="mine")


@in_loop
async def test_dataset_that_has_the_other_name_already_does_not_tell(secretive: SecretiveNode) -> None:
    """What a dataset is kept under follows from its identity, so whoever has two can take it for the first."""
    first, second = chain_of(secretive, FIRST), chain_of(secretive, SECOND)
    allow(secretive, first, second)
    before = secretive.holdings()[0]
    async with secretive.served() as stranger:
        stranger.token = SECRET
        taken = f"hidden.data.x{second.id.public_key.hex()[:16]}"
        assert (await push(stranger, first, taken))["status"] == "accepted"
        assert (await push(stranger, second, "hidden.data"))["status"] == "accepted"
        listed = (await stranger.ask("GET", "/_odf/v1/datasets")).json()["datasets"]
        names = {each["dataset_id"]: each["name"] for each in listed}
        assert (names[str(first.id)], names[str(second.id)]) == (taken, "hidden.data")
        found = await stranger.ask("GET", "/hidden.data/refs/head")
        assert found.body == str(second.head.hash).encode()
    assert [held for held in secretive.holdings()[0] if held[1] not in {first.id, second.id}] == before


@in_loop
async def test_proof_against_a_dataset_under_the_name_does_not_tell(secretive: SecretiveNode) -> None:
    """Two histories of one's own, signed and told by gossip: the frozen dataset is named as it was pushed."""
    chain = chain_of(secretive, FIRST)
    forks = [chain.copy().add_rows([("Bern", n)]) for n in (1, 2)]
    allow(secretive, chain)
    node, reported = secretive.node, []
    async with secretive.served() as stranger:
        stranger.token = SECRET
        assert (await push(stranger, chain, "hidden.data"))["status"] == "accepted"
        proof = prove_equivocation(EquivocationKind.HEADS, *(fork.signed_head() for fork in forks))
        assert Disputes(node.store).learn([proof.raw], chain.id, now=NOW) == 1
        paths = ("/hidden.data/refs/head", f"/{chain.id}/refs/head", f"/_odf/v1/datasets/{chain.id}/disputes")
        reported += [(await stranger.ask("GET", path)).body for path in paths]
        refused = await stranger.begin(forks[1], name="hidden.data")
        assert refused.status == 409
        reported.append(refused.body)
    stated = b"\n".join(reported).decode().replace(str(chain.id), "")
    assert "hidden.data" in stated
    assert chain.id.public_key.hex()[:16] not in stated
