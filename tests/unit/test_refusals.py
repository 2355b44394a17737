"""The folder of refusals: whole or not at all, readable, and never in the way."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from odf_node.errors import RefusedError, UnknownDatasetError
from odf_node.ports.block_stage import OfferedBlock
from odf_node.services.offers import Offer
from odf_node.services.refusals import Refusals
from odf_protocol.timestamp import Timestamp
from support.signing import NOON

OFFER = Offer(
    name="cities",
    source_url="http://peer.example/cities",
    base=None,
    blocks=[OfferedBlock(b"first", b"signature"), OfferedBlock(b"second", None, b"record")],
    signed_head=b"head",
)


@pytest.fixture
def refusals(tmp_path: Path) -> Refusals:
    return Refusals(tmp_path / "staging" / "refused")


def keep(
    refusals: Refusals, *, offer: Offer = OFFER, rule: str = "CHAIN-7 link", at: int = 0, **options: object
) -> str:
    fields: dict[str, object] = {
        "rule": rule,
        "reason": f"it breaks {rule}",
        "sequence_number": 1,
        "offer": offer,
        "files": {},
        "documents": {},
        "report": {"found": "x"},
        "now": Timestamp(NOON.seconds + at),
    }
    error = refusals.keep(**(fields | options))  # type: ignore[arg-type]
    assert isinstance(error, RefusedError)
    return str(error.report.get("id", ""))


def test_everything_that_was_offered_is_kept_as_it_came(refusals: Refusals, tmp_path: Path) -> None:
    slice_path = tmp_path / "slice"
    slice_path.write_bytes(b"rows")
    refusal_id = keep(refusals, files={"f1.offered": slice_path}, documents={"attestation.json": b"{}"})

    folder = Path(refusals.get_report(refusal_id)["folder"])
    kept = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
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


def test_newest_refusals_come_first(refusals: Refusals) -> None:
    ids = [keep(refusals, rule=f"RULE-{n}", at=n) for n in (1, 3, 2)]

    assert [report["id"] for report in refusals.iter_reports()] == [ids[1], ids[2], ids[0]]


def test_beginning_of_an_id_is_enough_while_it_is_the_only_one(refusals: Refusals) -> None:
    ids = [keep(refusals, rule=f"RULE-{n}") for n in range(17)]  # two of them begin alike

    assert refusals.get_report(ids[0])["rule"] == "RULE-0"
    firsts = [each[0] for each in ids]
    shared = next(first for first in firsts if firsts.count(first) > 1)
    for unclear in (shared, "", "zz"):
        with pytest.raises(UnknownDatasetError, match="refusals have an id that begins with"):
            refusals.get_report(unclear)


def test_same_refusal_keeps_its_id_and_its_newest_time(refusals: Refusals) -> None:
    assert keep(refusals, at=1) == keep(refusals, at=5)

    (report,) = refusals.iter_reports()
    assert report["refusedAt"] == str(Timestamp(NOON.seconds + 5))


def test_other_blocks_make_another_refusal(refusals: Refusals) -> None:
    other = replace(OFFER, blocks=[OfferedBlock(b"other"), OfferedBlock(b"second")])

    assert keep(refusals) != keep(refusals, offer=other)


def test_no_refusals_are_no_error(refusals: Refusals) -> None:
    assert list(refusals.iter_reports()) == []


def test_what_is_unfinished_or_foreign_in_the_folder_is_passed_over(refusals: Refusals) -> None:
    keep(refusals)
    (refusals.folder / "unfinished").mkdir()
    (refusals.folder / "a file").write_bytes(b"")

    assert len(list(refusals.iter_reports())) == 1


def test_text_of_strangers_cannot_break_the_report(refusals: Refusals) -> None:
    nasty = 'quote " newline \n null \x00 surrogate \udcff bidi \u202e'
    refusal_id = keep(refusals, offer=replace(OFFER, name=nasty), report={"found": nasty})

    raw = (refusals.folder / refusal_id / "report.json").read_bytes()
    assert json.loads(raw)["dataset"].startswith('quote " newline \n null \x00 surrogate')
    assert refusals.get_report(refusal_id)["block"] == 1


def test_refusal_stands_also_where_its_evidence_cannot_be_kept(refusals: Refusals, tmp_path: Path) -> None:
    error_id = keep(refusals, files={"slice": tmp_path / "that is not there"})

    assert error_id == ""
    assert list(refusals.iter_reports()) == []
    assert list(refusals.folder.parent.iterdir()) == [refusals.folder]
