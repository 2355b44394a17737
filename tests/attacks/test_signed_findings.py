"""What an auditor signs: a lie of the publisher's, wherever in the chain it stands, and never damage of its own.

A reader whose policies name the auditor takes nothing that the auditor contradicts (POLICY-6). So a lie about which
nothing is signed gets away, and a fault of the auditor's disk that is signed convicts an honest publisher.

Source: VERIFY-7 and VERIFY-9 in ``spec/extensions/verification.md``, ATTEST-22 and ATTEST-23 in
``spec/extensions/attestations.md``.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.trust import verifying
from odf_node.trust.auditing import publish_finding
from odf_node.trust.verifying import VerificationFinding, Verifier
from odf_protocol.did import DidKey
from odf_protocol.events import AddData
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy
from odf_protocol.step_record_codec import decode_step_record, sign_step_record
from odf_protocol.verification_statements import VerificationStatement, decode_verification
from support.forged_derivatives import FORGERS
from support.homes import make_home
from support.honest_derivatives import KINDS, Published, judge_with_engines
from support.offering_peer import OfferingPeer
from support.offers import NOON, Judge, PeerChain, PublisherHome, root_chain

LAST_SLICE = 4


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge.create(tmp_path / "auditor")


def verify_and_attest(judge: Judge, name: str) -> tuple[VerificationFinding, VerificationStatement | None]:
    record = judge.record(name)
    assert record is not None
    with judge.opened() as store:
        verifier = Verifier(make_home(judge.home, store), judge.engines)
        finding = verifier.verify(record, on_progress=Silence().on_progress)
        raw = publish_finding(finding, store, judge.keys, now=NOON)
        kept = [item.raw for item in store.iter_attestations(record.id) if item.attester == node_key(judge)]
    stated = None if raw is None else decode_verification(raw)
    assert (raw is None) or raw in kept
    return finding, stated


def node_key(judge: Judge) -> DidKey:
    return DidKey(judge.keys.get_or_create_node_key().public_key())


def with_false_rows(chain: PeerChain) -> PeerChain:
    """The publisher signs that the last slice has other rows than it has."""
    number = chain.head.sequence_number
    return chain.replacing(
        number, lambda event: replace(event, new_data=replace(event.new_data, logical_hash=Multihash.of_sha3_256(b"x")))
    )


@pytest.mark.parametrize(
    "chunk", [1, 2, 256], ids=["in a later piece of one", "in a later piece", "in the first piece"]
)
def test_lie_is_signed_wherever_it_stands_verify_7(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(verifying, "CHUNK_BLOCKS", chunk)
    chain = with_false_rows(root_chain(tmp_path).add_rows([("Atlantis", 1)]))
    PublisherHome(judge).keep(chain)

    finding, stated = verify_and_attest(judge, "cities")

    assert (finding.is_valid, finding.is_damage) == (False, False)
    assert stated is not None
    assert stated.problem is not None
    assert (stated.problem.sequence_number, stated.problem.rule) == (chain.head.sequence_number, finding.rule)
    assert (stated.first.sequence_number, stated.last.sequence_number) == (0, chain.head.sequence_number)
    assert stated.last.hash == chain.head.hash
    assert (stated.checked.slices_in_range, stated.checked.is_complete) == (3, False)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [_cut, _flip, Path.unlink])
@pytest.mark.parametrize("chunk", [1, 256])
def test_damage_of_the_auditor_is_told_and_never_signed_verify_9(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], chunk: int
) -> None:
    monkeypatch.setattr(verifying, "CHUNK_BLOCKS", chunk)
    chain = root_chain(tmp_path).add_rows([("Atlantis", 1)])
    judge.accept(chain)
    event = chain.blocks[LAST_SLICE].event
    assert isinstance(event, AddData)
    assert event.new_data is not None
    path = judge.objects.get_path(event.new_data.physical_hash)
    path.chmod(0o600)
    harm(path)

    finding, stated = verify_and_attest(judge, "cities")

    assert (finding.is_valid, finding.is_damage, stated) == (False, True, None)
    assert "says nothing of its publisher" in finding.describe()[1]


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published.make(tmp_path / "publisher", KINDS["datafusion-map"], Random(5))


def auditor_of(published: Published, folder: Path) -> Judge:
    judge = judge_with_engines(folder)
    for root in published.roots:
        judge.take(root.proposal(source_url=f"http://peer.example/{root.name}"), root.files)
    return judge


@pytest.mark.parametrize("name", sorted(FORGERS))
def test_forged_derivative_is_signed_against_and_stops_readers_who_named_the_auditor(
    published: Published, tmp_path: Path, name: str
) -> None:
    random = Random(7)
    forgery = next(filter(None, (FORGERS[name](published, random) for _ in range(5))), None)
    if forgery is None:
        pytest.skip("this chain has no such place")
    auditor = auditor_of(published, tmp_path / "auditor")
    try:
        auditor.accept(forgery.chain, policy=Policy.INTEGRITY)
    except ProposalRejectedError:
        return  # nobody takes it, under any policy

    finding, stated = verify_and_attest(auditor, "derived")

    assert stated is not None
    if finding.is_valid:
        assert stated.partial == finding.partial != ""
        return
    assert stated.problem is not None
    assert stated.problem.sequence_number is not None
    assert (stated.problem.rule, stated.last.hash) == (finding.rule, forgery.chain.head.hash)
    reader = Node(HomeFolder(judge_with_engines(tmp_path / "reader").home.path), FixedClock(NOON))
    reader.home.folder.policies.write_text(
        f"kind: AcceptPolicies\nversion: 1\nauditors: {{office: '{stated.node}'}}\n"
        "default: {accept: attested, threshold: 1}\n",
        encoding="utf-8",
    )
    peer = OfferingPeer(forgery.chain, statements=(stated.raw,))
    try:
        with pytest.raises(ProposalRejectedError, match="contradicted by office"):
            asyncio.run(reader.taking.take(peer, PullRequest(url="http://peer.example/derived", name="derived")))
    finally:
        reader.close()


def test_damaged_input_of_the_auditor_is_no_word_against_the_derivative_verify_9(
    published: Published, tmp_path: Path
) -> None:
    auditor = auditor_of(published, tmp_path / "auditor")
    auditor.accept(published.chain)
    assert verify_and_attest(auditor, "derived")[0].is_valid
    auditor.engines.rows.clear()
    for root in published.roots:
        for name in root.files:
            path = auditor.objects.get_path(name)
            path.chmod(0o600)
            _cut(path)

    finding, stated = verify_and_attest(auditor, "derived")

    assert (finding.is_valid, finding.is_damage, stated) == (False, True, None)


def test_step_of_another_build_is_told_and_not_signed_against_verify_9(published: Published, tmp_path: Path) -> None:
    """An honest publisher with another version gives other rows; a liar who says so is vouched for by nobody."""
    random = Random(7)
    forgery = next(filter(None, (FORGERS["another-cell"](published, random) for _ in range(5))))
    chain = forgery.chain
    raw = published.chain.step_records[forgery.block]
    assert raw is not None
    record = decode_step_record(raw).record
    elsewhere = replace(record, engine=replace(record.engine, digest=Multihash.of_sha3_256(b"another build")))
    records = list(chain.step_records)
    records[forgery.block] = sign_step_record(chain.key, elsewhere)
    auditor = auditor_of(published, tmp_path / "auditor")
    auditor.accept(chain.copy(step_records=records), policy=Policy.INTEGRITY)

    finding, stated = verify_and_attest(auditor, "derived")

    assert (finding.is_valid, finding.by_other_build, stated) == (False, True, None)
    assert "proves nothing" in finding.describe()[1]
