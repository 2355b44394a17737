"""Named attacks by a peer that can lie at every step, against a real node over real sockets (``spec/threats.md``).

One node stands through all of them: after each, what it holds is the same to the bit, it still serves others, and what
it reports names the peer. Attacks that can only be noticed (an old head) leave a doubt instead of a rejection.
"""

import asyncio
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pyarrow as pa
import pytest
import zstandard

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import HeadsFreshness
from odf_protocol.block import decode_block, encode_block
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.errors import OdfError
from odf_protocol.events import DatasetKind, OffsetInterval, Seed, SetDataSchema, SetInfo
from odf_protocol.exchange.messages import (
    HeadAnswer,
    HeadMessage,
)
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.in_toto import BlockRef
from odf_protocol.multihash import Multihash
from odf_protocol.settlements import sign_settlement
from odf_protocol.signatures import sign_block
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import Checked, VerificationProblem, sign_verification
from support.exchange_nodes import TestNode
from support.hostile_peer import (
    Script,
    answer,
    chunked,
    cut_after,
    endless,
    hostile_peer,
    not_found,
    raw_bytes,
    redirect,
    stall_after,
)
from support.lying_peer import JSON, Lie
from support.offers import CITY_SCHEMA, NOON, NOW, Judge, PeerChain, parquet_bytes, root_chain, slice_table
from support.signing import NEW_KEY, OTHER_KEY, did_key_of

QUICK = ClientSettings(attempts=2, backoff_s=0.001)
# For peers that stall, and for no others: who is patient waits for a busy machine too.
IMPATIENT = replace(QUICK, stall_s=0.3, message_s=1.0)
STALLING = {"slow-pack", "object-that-never-comes"}
ALICE, BOB = b"\x21" * 32, b"\x22" * 32
LAST = 3
POLICIES = f"""\
kind: AcceptPolicies
version: 1
auditors: {{alice: "{did_key_of(ALICE)}", bob: "{did_key_of(BOB)}"}}
rules:
  - {{peers: ["http://127.0.0.1/"], accept: integrity}}
default: {{accept: attested, threshold: 2}}
"""


Attack = Callable[[PeerChain], Lie]


def forged_last(chain: PeerChain, change: Callable[[Any], Any], **options: Any) -> PeerChain:
    """Change the last block's event as its publisher could, signed with the right key unless said otherwise."""
    return chain.replacing(LAST, change, **options)


def with_rows(chain: PeerChain, **columns: Any) -> PeerChain:
    """Publish a last slice whose rows break a rule, with everything else made to fit."""
    table = slice_table([("Turin", 1)] * 3, first_offset=3, at=Timestamp(NOON.seconds + LAST), **columns)
    return chain.up_to(2).add_slice(parquet_bytes(table), rows=3)


def with_file(chain: PeerChain, content: bytes, **claims: Any) -> PeerChain:
    claims.setdefault("logical_hash", chain.blocks[2].event.new_data.logical_hash)  # type: ignore[union-attr]
    return chain.up_to(2).add_slice(content, rows=3, **claims)


def last_file(chain: PeerChain) -> Multihash:
    found: Multihash = chain.blocks[LAST].event.new_data.physical_hash  # type: ignore[union-attr]
    return found


def object_states(script: Callable[[bytes], Script]) -> Attack:
    def make(chain: PeerChain) -> Lie:
        return Lie(chain, scripts={str(last_file(chain)): script(chain.files[last_file(chain)])})

    return make


def pack_states(change: Callable[[PeerChain, list[PackedBlock]], list[PackedBlock]]) -> Attack:
    return lambda chain: Lie(chain, pack=lambda blocks: change(chain, blocks))


def at(part: str, script: Script, **options: Any) -> Attack:
    return lambda chain: Lie(chain, scripts={part: script}, **options)


def with_raw(chain: PeerChain, **fields: Any) -> PeerChain:
    """Publish a last block with any header, properly signed."""
    changed = chain.up_to(2)
    values: dict[str, Any] = {
        "system_time": Timestamp(NOON.seconds + LAST),
        "prev_block_hash": chain.blocks[2].hash,
        "sequence_number": LAST,
    }
    event = fields.pop("event", SetInfo(description="x"))
    block = decode_block(encode_block(event, **(values | fields)), expected_hash=None)
    changed.blocks.append(block)
    changed.signatures.append(sign_block(chain.key, chain.id, block.sequence_number, block.hash))
    changed.step_records.append(None)
    return changed


def with_interval(chain: PeerChain, start: int, end: int) -> PeerChain:
    interval = OffsetInterval(start=start, end=end)
    return forged_last(chain, lambda e: replace(e, new_data=replace(e.new_data, offset_interval=interval)))


def statement(key: bytes, chain: PeerChain, *, problem: VerificationProblem | None = None, slices: int = 1) -> bytes:
    last = chain.blocks[-1]
    ref = BlockRef(last.sequence_number, last.hash)
    checked = Checked(blocks=1, slices=slices, slices_in_range=1, rows=3, steps=0, steps_in_range=0)
    return sign_verification(key, dataset_id=chain.id, first=ref, last=ref, checked=checked, problem=problem, time=NOW)


def audited(*make: Callable[[PeerChain], bytes]) -> Attack:
    return lambda chain: Lie(
        chain, statements=tuple(each(chain) for each in make), policies=POLICIES, policy=None, says="POLICY-6"
    )


def other_chain(chain: PeerChain) -> PeerChain:
    return root_chain(chain.folder, key=OTHER_KEY)


def fork_of(chain: PeerChain) -> PeerChain:
    return chain.up_to(2).add_rows([("Atlantis", 1)])


def head_that(chain: PeerChain, **changes: Any) -> HeadAnswer:
    return msgspec.structs.replace(Lie(chain).head_answer(), **changes)


def swapped_nulls(chain: PeerChain) -> Lie:
    """Send another slice that has the logical hash of the published one: that hash cannot tell '' and null apart."""
    honest, swapped = (chain.up_to(2).add_rows(rows) for rows in ([("", 1), (None, 1)], [(None, 1), ("", 1)]))
    return Lie(honest, scripts={str(last_file(honest)): answer(swapped.files[last_file(swapped)])})


def remember_newest(chain: PeerChain) -> Callable[[Node], None]:
    def remember(node: Node) -> None:
        HeadsFreshness(node.store).learn(chain.signed_head(), chain.id, source="http://witness.example/c", now=NOW)

    return remember


OTHER_COLUMNS = parquet_bytes(pa.table({"x": pa.array(["y"] * 3)}))

ATTACKS: dict[str, Attack] = {
    # Who speaks
    "head-by-a-wrong-key": lambda c: Lie(c, signed_head=c.signed_head(key=OTHER_KEY), says="HEAD-4"),
    "blocks-by-a-wrong-key": lambda c: Lie(
        c.copy(signatures=[*c.signatures[:LAST], sign_block(OTHER_KEY, c.id, LAST, c.head.hash)]), says="SIG-1"
    ),
    "head-without-its-signature": lambda c: Lie(c, signed_head=None, says="ACCEPT-3"),
    "block-without-its-signature": pack_states(lambda c, b: [replace(b[0], signature=None)]),
    "signature-of-another-block": pack_states(
        lambda c, b: [replace(b[0], signature=sign_block(c.key, c.id, 2, c.blocks[2].hash))]
    ),
    "signature-for-another-dataset": pack_states(
        lambda c, b: [replace(b[0], signature=sign_block(c.key, other_chain(c).id, LAST, c.head.hash))]
    ),
    "malleated-signature": pack_states(lambda c, b: [replace(b[0], signature=b"\xff" * 64)]),
    "head-of-another-dataset": lambda c: Lie(c, signed_head=other_chain(c).signed_head(), says="HEAD-4"),
    "damaged-head-document": lambda c: Lie(c, signed_head=c.signed_head()[:-1]),
    "head-document-without-end": lambda c: Lie(c, signed_head=c.signed_head() + b" " * 100_000),
    "another-dataset-under-a-held-name": lambda c: Lie(other_chain(c), says="ACCEPT-8"),
    "identity-that-the-user-did-not-name": lambda c: Lie(c, identity=other_chain(c).id, says="ACCEPT-8"),
    # Old and hidden
    "rollback": lambda c: Lie(c.up_to(1), ends="doubted", says="went back"),
    "freeze-with-an-expired-head": lambda c: Lie(
        c.up_to(2), signed_head=c.up_to(2).signed_head(expires=NOW), ends="doubted", says="ran out"
    ),
    "withheld-suffix": lambda c: Lie(c.up_to(2), ends="doubted", says="withheld", prepare=remember_newest(c)),
    "fast-forward": lambda c: Lie(
        c,
        head=head_that(
            c,
            head=HeadMessage(sequence_number=10**15, block_hash=str(c.head.hash)),
            signed_head=c.signed_head(sequence_number=10**15),
        ),
    ),
    "mix-and-match": lambda c: Lie(fork_of(c), signed_head=c.signed_head(), says="HEAD"),
    "replayed-old-head-with-new-blocks": lambda c: Lie(c, signed_head=c.up_to(2).signed_head(), says="HEAD"),
    "contradictory-head-and-blocks": lambda c: Lie(c, head=head_that(fork_of(c))),
    # Blocks
    "reordered-blocks": lambda c: Lie(c.copy().add(SetInfo(description="x")), pack=lambda b: b[::-1]),
    "repeated-block": pack_states(lambda c, b: b * 2),
    "missing-block": lambda c: Lie(c.copy().add(SetInfo(description="x")), pack=lambda b: b[1:]),
    "replayed-blocks-from-the-start": pack_states(lambda c, b: [PackedBlock(c.blocks[0].raw, c.signatures[0], None)]),
    "no-blocks": pack_states(lambda c, b: []),
    "changed-byte": pack_states(lambda c, b: [replace(b[0], raw=b[0].raw[:-5] + b"\x00\x01\x02\x03\x04")]),
    "truncated-block": pack_states(lambda c, b: [replace(b[0], raw=b[0].raw[: len(b[0].raw) // 2])]),
    "block-of-rubbish": pack_states(lambda c, b: [replace(b[0], raw=b"\xff" * 500)]),
    "block-that-points-outside-itself": pack_states(lambda c, b: [replace(b[0], raw=b"\xff\xff\xff\x7f" * 100)]),
    "second-seed": lambda c: Lie(with_raw(c, event=Seed(dataset_id=c.id, dataset_kind=DatasetKind.ROOT)), says="CHAIN"),
    # Signed by the true key with a head that fits, a wrong link would be a fork, and freeze: tested below.
    "wrong-link": pack_states(
        lambda c, b: [replace(b[0], raw=with_raw(c, prev_block_hash=c.blocks[1].hash).blocks[-1].raw)]
    ),
    "wrong-number": lambda c: Lie(with_raw(c, sequence_number=LAST + 1)),
    "time-that-goes-back": lambda c: Lie(with_raw(c, system_time=Timestamp(NOON.seconds - 9)), says="CHAIN"),
    "offsets-with-a-gap": lambda c: Lie(with_interval(c, 5, 7), says="CHAIN"),
    "schema-that-drops-columns": lambda c: Lie(
        c.up_to(2).add(SetDataSchema(schema=replace(CITY_SCHEMA, fields=CITY_SCHEMA.fields[:-1])))
    ),
    "replay-record-where-no-step-is": pack_states(lambda c, b: [replace(b[0], step_record=b"{}")]),
    "slice-of-zero-rows": lambda c: Lie(with_interval(c, 3, 2), says="CHAIN"),
    # Packs and messages
    "pack-that-explodes": at("/blocks", answer(zstandard.compress(b"\x00" * 200_000_000))),
    "truncated-pack": lambda c: Lie(c, scripts={"/blocks": answer(encode_pack([])[0][:-2])}),
    "endless-pack": at("/blocks", endless()),
    "slow-pack": at("/blocks", stall_after(b"x" * 1000, 10)),
    "cut-pack": at("/blocks", cut_after(b"x" * 1000, 10)),
    "endless-json": at("/head", endless(b" " * 65_536, headers=JSON)),
    "deep-json": at("/head", answer(b"[" * 100_000, headers=JSON)),
    "json-of-other-types": at("/head", answer(b'{"dataset_id":1,"name":[],"kind":{},"head":null}', headers=JSON)),
    "huge-numbers": at("/head", answer(b'{"head":{"sequence_number":1' + b"0" * 5000 + b"}}", headers=JSON)),
    "header-bomb": at("/head", raw_bytes(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n")),
    "not-http": at("/head", raw_bytes(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")),
    "smuggled-second-answer": at(
        "/head", raw_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}")
    ),
    "errors-for-ever": at("/head", answer(b"", status="500 Oops")),
    # Where the node is sent
    "redirect-to-the-node-itself": at("/head", redirect("http://127.0.0.1:22/")),
    "redirect-to-the-cloud-metadata": at("/head", redirect("http://169.254.169.254/latest/meta-data/")),
    "redirect-to-a-file": at("/head", redirect("file:///etc/passwd")),
    "redirect-in-a-circle": at("/head", redirect("/cities/head")),
    # Objects
    "object-of-other-bytes": object_states(lambda data: answer(b"y" * len(data))),
    "object-that-is-longer": object_states(lambda data: answer(data + b"!")),
    "object-that-is-shorter": object_states(lambda data: answer(data[:-1])),
    "endless-object": object_states(lambda data: endless()),
    "object-of-a-petabyte": object_states(lambda data: answer(b"", length=10**15)),
    "object-that-never-comes": object_states(lambda data: stall_after(data, 10)),
    "object-that-is-missing": object_states(lambda data: not_found),
    "compressed-object": object_states(lambda data: answer(gzip.compress(data), headers={"Content-Encoding": "gzip"})),
    "chunked-object-with-more": object_states(lambda data: chunked(data + b"more")),
    "collision-of-the-logical-hash": lambda c: swapped_nulls(c),
    # Rows
    "slice-that-is-no-parquet": lambda c: Lie(with_file(c, b"PAR1 no PAR1")),
    "slice-of-other-columns": lambda c: Lie(with_file(c, OTHER_COLUMNS), says="ROWS-1"),
    "cut-slice": lambda c: Lie(with_file(c, c.files[last_file(c)][:-20])),
    "rows-with-other-offsets": lambda c: Lie(with_rows(c, offset=[3, 5, 4]), says="ROWS-2"),
    "rows-of-another-time": lambda c: Lie(with_rows(c, system_time=[0] * 3), says="ROWS-3"),
    "rows-with-unknown-operations": lambda c: Lie(with_rows(c, op=[0, 9, 0]), says="ROWS-4"),
    "more-rows-than-offsets": lambda c: Lie(c.up_to(2).add_slice(c.files[last_file(c)], rows=2), says="ROWS-2"),
    "values-of-another-hash": lambda c: Lie(with_file(c, c.files[last_file(c)]), says="ROWS-5"),
    "size-that-is-not-true": lambda c: Lie(
        forged_last(c, lambda e: replace(e, new_data=replace(e.new_data, size=e.new_data.size + 1)))
    ),
    # Attestations and proofs
    "one-auditor-counted-twice": audited(
        lambda c: statement(ALICE, c), lambda c: statement(ALICE, c, problem=None, slices=1)
    ),
    "forged-attestation": audited(
        lambda c: statement(ALICE, c), lambda c: statement(BOB, c).replace(b'"sig":"', b'"sig":"AAAA')
    ),
    "attestation-of-a-sample": audited(lambda c: statement(ALICE, c), lambda c: statement(BOB, c, slices=0)),
    "attestation-of-a-fork": audited(lambda c: statement(ALICE, c), lambda c: statement(BOB, fork_of(c))),
    "replayed-old-attestation": audited(lambda c: statement(ALICE, c), lambda c: statement(BOB, c.up_to(2))),
    "sybil-auditors": audited(
        lambda c: statement(ALICE, c), *[lambda c, n=n: statement(bytes([n]) * 32, c) for n in range(60, 90)]
    ),
    "bribed-majority-against-one-auditor": audited(
        lambda c: statement(ALICE, c),
        lambda c: statement(BOB, c),
        lambda c: statement(BOB, c, problem=VerificationProblem("ROWS-5", "it differs", LAST)),
    ),
    "forged-proof-to-freeze": lambda c: Lie(
        c.up_to(2), ends="ignored", disputes=(b"{}", b'{"type":"equivocation"}', b"\x00" * 2000)
    ),
    "proof-against-another-key": lambda c: Lie(
        c.up_to(2),
        ends="ignored",
        disputes=(
            prove_equivocation(
                EquivocationKind.HEADS,
                c.signed_head(key=NEW_KEY),
                fork_of(c).signed_head(key=NEW_KEY),
            ).raw,
        ),
    ),
    "settlement-by-a-stranger": lambda c: Lie(
        c.up_to(2),
        ends="ignored",
        disputes=(
            sign_settlement(
                NEW_KEY,
                prove_equivocation(
                    EquivocationKind.HEADS, c.signed_head(key=NEW_KEY), fork_of(c).signed_head(key=NEW_KEY)
                ),
                keeps=c.head.hash,
                reason="take mine",
                time=NOW,
            ),
        ),
    ),
}


@dataclass
class Victim:
    """A node that holds the honest chain up to block 2 and serves it."""

    node: Node
    chain: PeerChain

    def holdings(self) -> Any:
        store = self.node.store
        return (
            [(r.name, r.id, r.head, r.trust, r.pinned_key) for r in store.list_datasets()],
            [(b.raw, b.signature) for b in store.iter_blocks(self.chain.id)],
            sorted(map(str, self.node.objects.iter_hashes())),
            [(a.head, a.trust) for a in store.iter_acceptances(self.chain.id)],
        )


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("attacks")
    judge = Judge.create(folder / "home")
    chain = root_chain(folder)
    judge.accept(chain.up_to(2))
    node = Node(HomeFolder(folder / "home"), FixedClock(NOW))
    yield Victim(node, chain)
    node.close()


async def pull(node: Node, lie: Lie, settings: ClientSettings = QUICK) -> tuple[Any, str]:
    async with hostile_peer({"": lie}) as peer:
        try:
            async with await open_peer(f"{peer.url}/cities", settings) as opened:
                report = await node.taking.take(
                    opened,
                    PullRequest(url=f"{peer.url}/cities", name="cities", policy=lie.policy, expected_id=lie.identity),
                )
        except OdfError as error:
            return error, peer.url
        return report, peer.url


async def still_serves(victim: Victim) -> bool:
    """Ask the victim for its head as any other node would."""
    served = TestNode(victim.node.home, victim.node.store, victim.node.objects, None)  # type: ignore[arg-type]
    async with served.serving() as address, aiohttp.ClientSession() as session:
        reply = await session.get(f"{address}/cities/refs/head")
        return (reply.status, await reply.text()) == (200, str(victim.chain.up_to(2).head.hash))


def test_there_are_enough_attacks_and_each_has_its_line_in_the_threats() -> None:
    assert len(ATTACKS) >= 60
    text = (Path(__file__).parents[2] / "spec/threats.md").read_text()
    assert [name for name in ATTACKS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_changes_nothing_and_the_node_serves_on(victim: Victim, name: str) -> None:
    lie = ATTACKS[name](victim.chain)
    victim.node.home.folder.policies.write_text(lie.policies or POLICIES)
    lie.prepare(victim.node)
    before = victim.holdings()

    outcome, url = asyncio.run(pull(victim.node, lie, IMPATIENT if name in STALLING else QUICK))

    assert lie.mistakes == []  # the peer lied as it meant to
    assert victim.holdings() == before
    assert asyncio.run(still_serves(victim))
    if lie.ends == "refused":
        assert isinstance(outcome, OdfError), outcome
        source = outcome.report.get("source", "") if isinstance(outcome, ProposalRejectedError) else str(outcome)
        assert url in source
        if lie.says:
            assert lie.says in f"{getattr(outcome, 'rule', '')} {outcome}"
    else:
        assert not isinstance(outcome, OdfError), outcome
        assert outcome.new_blocks == 0
        assert not lie.says or any(lie.says in warning for warning in outcome.warnings), outcome.warnings
        assert Disputes(victim.node.store).find_obstacle(victim.chain.id) is None


def test_compromised_key_that_forks_is_proved_and_freezes(tmp_path: Path) -> None:
    judge = Judge.create(tmp_path / "home")
    chain = root_chain(tmp_path)
    judge.accept(chain)
    node = Node(HomeFolder(tmp_path / "home"), FixedClock(NOW))

    outcome, url = asyncio.run(pull(node, Lie(fork_of(chain))))

    assert isinstance(outcome, ProposalRejectedError)
    assert outcome.report["source"] == f"{url}/cities"
    frozen, _ = asyncio.run(pull(node, Lie(chain)))
    assert "frozen" in str(frozen)
    node.close()


def test_honest_growth_is_taken_after_everything(victim: Victim) -> None:
    """The other way round: a node that stood through all attacks rejects nobody who is honest."""
    outcome, _ = asyncio.run(pull(victim.node, Lie(victim.chain)))

    assert not isinstance(outcome, OdfError), outcome
    assert outcome.new_blocks == 1
