"""The folder of rejections: whole or not at all, readable, and never in the way."""

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from odf_node.acceptance import refusals as rejections_module
from odf_node.acceptance.offers import Proposal
from odf_node.acceptance.refusals import Rejections
from odf_node.errors import ProposalRejectedError, UnknownDatasetError
from odf_node.ports.block_stage import ProposedBlock
from odf_protocol.timestamp import Timestamp
from support.signing import NOON

PROPOSAL = Proposal(
    name="cities",
    source_url="http://peer.example/cities",
    base=None,
    blocks=[ProposedBlock(b"first", b"signature"), ProposedBlock(b"second", None, b"record")],
    signed_head=b"head",
)


@pytest.fixture
def refusals(tmp_path: Path) -> Rejections:
    return Rejections(tmp_path / "staging" / "refused")


def keep(
    refusals: Rejections, *, proposal: Proposal = PROPOSAL, rule: str = "CHAIN-7 link", at: int = 0, **options: object
) -> str:
    fields: dict[str, object] = {
        "rule": rule,
        "reason": f"it breaks {rule}",
        "sequence_number": 1,
        "proposal": proposal,
        "files": {},
        "documents": {},
        "report": {"found": "x"},
        "now": Timestamp(NOON.seconds + at),
    }
    error = refusals.keep(**(fields | options))  # type: ignore[arg-type]
    assert isinstance(error, ProposalRejectedError)
    return str(error.report.get("id", ""))


def test_everything_that_was_proposed_is_kept_as_it_came(refusals: Rejections, tmp_path: Path) -> None:
    slice_path = tmp_path / "slice"
    slice_path.write_bytes(b"rows")
    rejection_id = keep(refusals, files={"f1.offered": slice_path}, documents={"attestation.json": b"{}"})

    folder = Path(refusals.get_report(rejection_id)["folder"])
    kept = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with zstandard.ZstdDecompressor().stream_reader(kept.pop("blocks.tar.zst")) as content:
        archive = tarfile.open(mode="r:", fileobj=io.BytesIO(content.read()))  # noqa: SIM115
    kept |= {f"blocks/{each.name}": archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    assert json.loads(kept.pop("report.json"))["rule"] == "CHAIN-7 link"
    assert kept == {
        "f1.offered": b"rows",
        "attestation.json": b"{}",
        "signed-head": b"head",
        "blocks/000000": b"first",
        "blocks/000000.signature": b"signature",
        "blocks/000001": b"second",
        "blocks/000001.replay": b"record",
    }
    assert list(refusals.iter_proposed(folder)) == list(PROPOSAL.blocks)


@given(
    st.lists(
        st.builds(
            ProposedBlock,
            st.binary(max_size=600),
            st.none() | st.binary(max_size=70),
            st.none() | st.binary(max_size=9),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_blocks_of_any_bytes_come_back_as_they_were_proposed(blocks: list[ProposedBlock]) -> None:
    with TemporaryDirectory() as folder:
        kept = Rejections(Path(folder) / "refused")
        rejection_id = keep(kept, proposal=replace(PROPOSAL, blocks=blocks))
        assert list(kept.iter_proposed(kept.folder / rejection_id)) == blocks


@pytest.mark.parametrize("damage", [lambda raw: raw[:-30], lambda raw: b"", lambda raw: b"x" + raw[1:]])
def test_damaged_file_of_blocks_is_read_as_far_as_it_goes(
    refusals: Rejections, damage: Callable[[bytes], bytes]
) -> None:
    folder = refusals.folder / keep(refusals)
    path = folder / "blocks.tar.zst"
    path.write_bytes(damage(path.read_bytes()))
    assert list(refusals.iter_proposed(folder)) in ([], list(PROPOSAL.blocks[:1]), list(PROPOSAL.blocks))
    path.unlink()
    assert list(refusals.iter_proposed(folder)) == []


def test_long_chain_takes_one_file_and_little_more_room_than_its_bytes(refusals: Rejections) -> None:
    blocks = [ProposedBlock(Random(n).randbytes(250), bytes(64)) for n in range(2000)]
    folder = refusals.folder / keep(refusals, proposal=replace(PROPOSAL, blocks=blocks))
    assert len(list(folder.rglob("*"))) == 3
    assert (folder / "blocks.tar.zst").stat().st_size < 1.5 * 2000 * 314


def test_whoever_is_rejected_again_and_again_pushes_out_evidence_against_itself_alone(
    refusals: Rejections, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [ProposedBlock(Random(1).randbytes(100_000))]
    others = {keep(refusals, proposal=replace(PROPOSAL, name=f"other{n}")) for n in range(5)}
    limited = replace(refusals, limit_bytes=1_000_000)
    for n in range(30):
        again = keep(limited, proposal=replace(PROPOSAL, name="again", blocks=[*large, ProposedBlock(bytes([n]))]))
    kept = {path.name for path in refusals.folder.iterdir()}
    assert others < kept
    assert again in kept
    assert len(kept - others) < 10

    monkeypatch.setattr(rejections_module, "MAX_KEPT", 8)
    for n in range(10):
        again = keep(limited, proposal=replace(PROPOSAL, name="small", blocks=[ProposedBlock(bytes([n]))]))
    kept = {path.name for path in refusals.folder.iterdir()}
    assert len(kept) == 8
    assert others | {again} < kept


def test_newest_rejections_come_first(refusals: Rejections) -> None:
    ids = [keep(refusals, rule=f"RULE-{n}", at=n) for n in (1, 3, 2)]

    assert [report["id"] for report in refusals.iter_reports()] == [ids[1], ids[2], ids[0]]


def test_beginning_of_an_id_is_enough_while_it_is_the_only_one(refusals: Rejections) -> None:
    ids = [keep(refusals, rule=f"RULE-{n}") for n in range(3)]

    assert refusals.get_report(ids[0])["rule"] == "RULE-0"
    assert refusals.get_report(ids[0][:10])["rule"] == "RULE-0"
    for unclear in (ids[0][:4], "", "zz"):  # those of one dataset begin alike
        with pytest.raises(UnknownDatasetError, match="rejections have an id that begins with"):
            refusals.get_report(unclear)


def test_same_rejection_keeps_its_id_and_its_newest_time(refusals: Rejections) -> None:
    assert keep(refusals, at=1) == keep(refusals, at=5)

    (report,) = refusals.iter_reports()
    assert report["refusedAt"] == str(Timestamp(NOON.seconds + 5))


def test_other_blocks_make_another_rejection(refusals: Rejections) -> None:
    other = replace(PROPOSAL, blocks=[ProposedBlock(b"other"), ProposedBlock(b"second")])

    assert keep(refusals) != keep(refusals, proposal=other)


def test_no_rejections_are_no_error(refusals: Rejections) -> None:
    assert list(refusals.iter_reports()) == []


def test_what_is_unfinished_or_foreign_in_the_folder_is_passed_over(refusals: Rejections) -> None:
    keep(refusals)
    (refusals.folder / "unfinished").mkdir()
    (refusals.folder / "a file").write_bytes(b"")

    assert len(list(refusals.iter_reports())) == 1


def test_rejection_that_is_given_up_while_they_are_listed_is_passed_over(
    refusals: Rejections, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(refusals)
    keep(refusals, rule="CHAIN-8 other")
    really_read = Path.read_bytes

    def give_up_first(path: Path) -> bytes:
        monkeypatch.undo()
        shutil.rmtree(path.parent)
        return really_read(path)

    monkeypatch.setattr(Path, "read_bytes", give_up_first)
    assert len(list(refusals.iter_reports())) == 1


def test_text_of_strangers_cannot_break_the_report(refusals: Rejections) -> None:
    nasty = 'quote " newline \n null \x00 surrogate \udcff bidi \u202e'
    rejection_id = keep(refusals, proposal=replace(PROPOSAL, name=nasty), report={"found": nasty})

    raw = (refusals.folder / rejection_id / "report.json").read_bytes()
    assert json.loads(raw)["dataset"].startswith('quote " newline \n null \x00 surrogate')
    assert refusals.get_report(rejection_id)["block"] == 1


def test_rejection_stands_also_where_its_evidence_cannot_be_kept(refusals: Rejections, tmp_path: Path) -> None:
    error_id = keep(refusals, files={"slice": tmp_path / "that is not there"})

    assert error_id == ""
    assert list(refusals.iter_reports()) == []
    assert list(refusals.folder.parent.iterdir()) == [refusals.folder]
