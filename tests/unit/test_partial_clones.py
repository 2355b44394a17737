"""Datasets of others without their files: what is claimed, what is shown, how the rest is brought."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odf_node.acceptance.offers import EVERYTHING, AcceptanceReport, AcceptOptions, FileCount, Subset
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.home_backup import back_up, restore
from odf_node.adapters.layout_places import find_layout_target
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.errors import ObjectsAbsentError, ProposalRejectedError, UsageError
from odf_node.exchange import fetching
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_node.exchange.taking import PullRequest
from odf_node.front import Table
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.records.datasets import DatasetRecord
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.errors import RejectedError
from odf_protocol.events import DatasetKind, Seed
from odf_protocol.policy import Policy, Trust
from odf_protocol.timestamp import Timestamp
from support.offering_peer import OfferingPeer
from support.offers import CITIES, NOW, Judge, PeerChain, PublisherHome, root_chain, select, slice_table
from support.signing import NEW_KEY, OTHER_KEY, dataset_of
from support.stores import find_named

METADATA = AcceptOptions(published=True, force=False, subset=Subset.METADATA_ONLY)
ROWS_LATER = AcceptOptions(published=True, force=False, subset=Subset.ROWS_LATER)
URL = "http://127.0.0.1:9/cities"  # no server answers there


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    return Judge.create(tmp_path / "home").home


@pytest.fixture
def node(home: HomeFolder) -> Iterator[Node]:
    with closing(Node(home, FixedClock(NOW))) as node:
        yield node


def pull(
    node: Node,
    chain: PeerChain,
    pull_options: AcceptOptions = EVERYTHING,
    *,
    policy: Policy | None = None,
    name: str = "cities",
    **peer: Any,
) -> AcceptanceReport:
    request = PullRequest(url=URL, name=name, policy=policy, pull_options=pull_options)
    return asyncio.run(node.taking.take(OfferingPeer(chain, **peer), request))


def held(node: Node) -> DatasetRecord:
    record = find_named(node.store, "cities")
    assert record is not None
    return record


def grounds(node: Node) -> list[tuple[str, list[int], list[str]]]:
    found = []
    for item in node.store.iter_acceptances(held(node).id):
        detail = item.grounds.to_json()
        found.append((item.trust.value, detail["blocks"], detail["notChecked"]))
    return found


def show(home: HomeFolder, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["--home", str(home.path), *words, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def read_nothing(*_: object) -> None:
    raise AssertionError("a slice was read")


def test_metadata_alone_brings_no_file_and_claims_nothing_about_them(node: Node, chain: PeerChain) -> None:
    async def never() -> None:
        raise AssertionError("a file was asked for")

    report = pull(node, chain, METADATA, before_objects=never)

    assert (report.new_blocks, report.unchecked, report.record.trust) == (4, ("files", "rows"), Trust.METADATA)
    assert report.new_files == FileCount(2, sum(map(len, chain.files.values())))
    assert list(node.objects.iter_hashes()) == []
    assert grounds(node) == [("metadata-only", [0, 3], ["files", "rows"])]
    assert "not looked at" in report.decision.reason
    statements = [item.raw.decode() for item in node.store.iter_attestations(chain.id)]
    assert len(statements) == 1
    assert pull(node, chain, METADATA).new_blocks == 0


def test_later_pull_brings_the_files_and_raises_what_it_rests_on(node: Node, chain: PeerChain) -> None:
    pull(node, chain, METADATA)

    report = pull(node, chain)

    size_bytes = sum(map(len, chain.files.values()))
    assert (report.new_blocks, report.completed_blocks, report.record.trust) == (0, 4, Trust.SIGNED)
    assert (report.completed_files, report.unchecked) == (FileCount(2, size_bytes, 2, size_bytes), ())
    assert set(node.objects.iter_hashes()) == set(chain.files) == node.store.list_expected_objects()
    assert [trust for trust, _, _ in grounds(node)] == ["metadata-only", "signed"]
    assert pull(node, chain).completed_blocks == 0


def test_later_pull_completes_what_is_held_and_takes_what_is_new(node: Node, chain: PeerChain) -> None:
    early = chain.up_to(2)
    pull(node, early, METADATA)

    report = pull(node, chain)

    assert (report.new_blocks, report.completed_blocks, held(node).trust) == (1, 3, Trust.SIGNED)
    assert [blocks for _, blocks, _ in grounds(node)] == [[0, 2], [0, 2], [3, 3]]


def test_metadata_on_top_of_verified_blocks_weakens_the_whole_until_it_is_completed(
    node: Node, chain: PeerChain
) -> None:
    pull(node, chain.up_to(2))
    assert pull(node, chain, METADATA).record.trust is Trust.METADATA
    assert len(node.store.list_absent_objects(chain.id)) == 1

    report = pull(node, chain)

    assert (report.completed_blocks, report.record.trust) == (1, Trust.SIGNED)
    assert node.store.list_absent_objects(chain.id) == frozenset()


def test_rows_that_are_not_what_the_blocks_say_are_rejected_on_completion_and_nothing_changes(
    node: Node, chain: PeerChain
) -> None:
    forged = chain.replacing_slice(2, slice_table(CITIES, first_offset=0, at=Timestamp(NOW.seconds)))
    pull(node, forged, METADATA)
    before = (held(node), grounds(node))

    with pytest.raises(ProposalRejectedError) as caught:
        pull(node, forged)

    assert "ROWS" in caught.value.rule
    assert (held(node), grounds(node)) == before
    assert held(node).trust is Trust.METADATA
    (kept,) = node.refusals.iter_reports()
    assert kept["id"] == caught.value.report["id"]


def test_unsigned_metadata_need_the_policy_that_says_so(node: Node, chain: PeerChain) -> None:
    unsigned = chain.copy(signatures=[None] * len(chain.blocks))
    with pytest.raises(ProposalRejectedError, match="no signatures"):
        pull(node, unsigned, METADATA, has_signatures=False)

    report = pull(node, unsigned, METADATA, policy=Policy.UNSIGNED, has_signatures=False)
    assert report.record.trust is Trust.METADATA
    assert "unsigned" in report.decision.reason
    with pytest.raises(ProposalRejectedError, match="no signatures"):
        pull(node, unsigned, has_signatures=False)
    assert pull(node, unsigned, policy=Policy.UNSIGNED, has_signatures=False).record.trust is Trust.UNSIGNED


def test_broken_chain_is_rejected_without_its_files_too(node: Node, chain: PeerChain) -> None:
    with pytest.raises(ProposalRejectedError):
        pull(node, chain.copy(signatures=[None, *chain.signatures[1:]]), METADATA)
    assert node.store.list_datasets() == ()


def test_push_on_top_of_metadata_does_not_complete_it(node: Node, chain: PeerChain) -> None:
    pull(node, chain.up_to(2), METADATA)
    pushed = AcceptOptions(published=True, force=False, completes=False)
    assert pull(node, chain, pushed).record.trust is Trust.METADATA
    assert pull(node, chain).record.trust is Trust.SIGNED
    assert set(node.objects.iter_hashes()) == set(chain.files)


def test_files_whose_rows_come_later_are_here_and_nothing_is_claimed_about_rows(
    node: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SliceProcess, "check", read_nothing)
        patch.setattr(SliceProcess, "start", read_nothing)
        report = pull(node, chain, ROWS_LATER)

    assert (report.new_blocks, report.record.trust) == (4, Trust.METADATA)
    assert set(node.objects.iter_hashes()) == set(chain.files)
    assert grounds(node) == [("metadata-only", [0, 3], ["rows"])]
    assert "files hold" in report.decision.reason
    completed = pull(node, chain)
    assert (completed.completed_blocks, completed.record.trust) == (4, Trust.SIGNED)
    assert (completed.completed_files.files, completed.completed_files.fetched_files) == (2, 0)
    assert node.store.list_absent_objects(chain.id) == frozenset()


def test_files_of_blocks_taken_without_them_come_unread_once(
    node: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SliceProcess, "check", read_nothing)
    monkeypatch.setattr(SliceProcess, "start", read_nothing)
    pull(node, chain.up_to(2), METADATA)

    report = pull(node, chain, ROWS_LATER)

    first, last = (len(content) for content in chain.files.values())
    assert (report.new_blocks, report.new_files) == (1, FileCount(1, last, 1, last))
    assert (report.completed_blocks, report.completed_files) == (3, FileCount(1, first, 1, first))
    assert (report.unchecked, report.record.trust) == (("rows",), Trust.METADATA)
    assert set(node.objects.iter_hashes()) == set(chain.files)
    assert node.store.list_absent_objects(chain.id) == set(chain.files)
    for pull_options in (ROWS_LATER, METADATA):
        again = pull(node, chain, pull_options)
        assert (again.new_blocks, again.completed_blocks, again.unchecked) == (0, 0, ("rows",))
    assert [(blocks, left) for _, blocks, left in grounds(node)] == [
        ([0, 2], ["files", "rows"]), ([0, 2], ["rows"]), ([3, 3], ["rows"])
    ]  # fmt: skip

    monkeypatch.undo()
    assert (pull(node, chain).completed_blocks, held(node).trust) == (4, Trust.SIGNED)


def test_files_of_verified_blocks_are_not_touched_where_those_of_others_come_unread(
    node: Node, chain: PeerChain
) -> None:
    pull(node, chain.up_to(2))
    pull(node, chain, METADATA)

    report = pull(node, chain, ROWS_LATER)

    assert (report.completed_blocks, report.completed_files.files) == (1, 1)
    first, last = chain.files
    assert node.store.list_absent_objects(chain.id) == {last}
    assert node.store.list_expected_objects() == {first}
    assert (pull(node, chain).completed_blocks, held(node).trust) == (1, Trust.SIGNED)


def test_unread_file_that_is_not_here_any_more_comes_again(node: Node, chain: PeerChain) -> None:
    pull(node, chain, ROWS_LATER)
    gone, _ = chain.files
    node.objects.delete(gone)

    report = pull(node, chain, ROWS_LATER)

    assert (report.completed_blocks, report.completed_files.fetched_files) == (4, 1)
    assert node.objects.has(gone)


@pytest.mark.parametrize("patience", [1, 2])
def test_peer_that_lacks_a_file_of_held_blocks_gives_the_others_and_changes_no_record(
    node: Node, chain: PeerChain, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_ABSENT", patience)
    pull(node, chain, METADATA)
    before = (held(node), grounds(node))
    lacked, other = chain.files
    lacking = chain.copy(files={other: chain.files[other]})

    with pytest.raises(ObjectsAbsentError, match=f"'cities' lacks {3 - patience} file") as caught:
        pull(node, lacking, ROWS_LATER)

    assert str(lacked) in str(caught.value)
    # Who lacks as many as that is asked for no more.
    here = [other] if patience == 2 else []
    assert (held(node), grounds(node), list(node.objects.iter_hashes())) == (*before, here)
    count = pull(node, chain, ROWS_LATER).completed_files
    assert (count.files, count.fetched_files) == (2, 2 - len(here))


def test_file_of_a_held_block_with_other_bytes_is_rejected_and_the_copy_stays_as_it_was(
    node: Node, chain: PeerChain
) -> None:
    pull(node, chain, METADATA)
    before = (held(node), grounds(node))
    name, content = next(iter(chain.files.items()))
    lying = chain.copy(files={**chain.files, name: content[:-1] + bytes([content[-1] ^ 1])})

    with pytest.raises(ProposalRejectedError):
        pull(node, lying, ROWS_LATER)

    assert (held(node), grounds(node), node.objects.has(name)) == (*before, False)
    assert pull(node, chain, ROWS_LATER).unchecked == ("rows",)


def test_rows_that_come_later_are_checked_before_anybody_reads_them(
    home: HomeFolder, node: Node, chain: PeerChain, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = chain.replacing_slice(2, slice_table(CITIES, first_offset=0, at=Timestamp(NOW.seconds)))
    pull(node, forged, ROWS_LATER)
    bad = forged.blocks[2].event.new_data.physical_hash  # type: ignore[union-attr]
    assert node.objects.has(bad)

    assert main(["--home", str(home.path), "tail", "cities", "-n", "100"]) == 4
    assert "ROWS-3" in capsys.readouterr().err
    assert not node.objects.has(bad)


def test_files_are_brought_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pull", URL, "--metadata-only", "--rows-later"])
    assert ended.value.code == 2
    stated = capsys.readouterr().err
    assert "--metadata-only" in stated
    assert "--rows-later" in stated


def test_file_that_is_not_what_its_block_says_is_rejected_although_rows_come_later(
    node: Node, chain: PeerChain
) -> None:
    name, content = next(iter(chain.files.items()))
    lying = chain.copy(files={**chain.files, name: content[:-1] + bytes([content[-1] ^ 1])})

    with pytest.raises(ProposalRejectedError):
        pull(node, lying, ROWS_LATER)
    assert node.store.list_datasets() == ()


def test_own_dataset_is_not_taken_on_its_metadata(tmp_path: Path) -> None:
    publisher = PublisherHome(Judge.create(tmp_path / "own"))
    record = publisher.keep(root_chain(tmp_path))
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node, pytest.raises(UsageError, match="own"):
        asyncio.run(
            node.pulling.pull(
                PullTarget(record.name, record, None), PullOptions(subset=Subset.METADATA_ONLY), Silence()
            )
        )


def test_own_datasets_beside_those_of_others_are_pulled_as_ever(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = Judge.create(tmp_path / "own")
    root = PeerChain(tmp_path, name="root", key=OTHER_KEY)
    root.add(Seed(dataset_id=root.id, dataset_kind=DatasetKind.ROOT))
    derivative = PeerChain(tmp_path, name="large", key=NEW_KEY)
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    derivative.add(select("SELECT * FROM root", root.id))
    for each in (root, derivative):
        PublisherHome(judge).keep(each)
    assert main(["--home", str(judge.home.path), "pull", "--all", "--rows-later"]) == 2
    assert "--rows-later is for datasets of others" in capsys.readouterr().err

    show(judge.home, capsys, "pull", source, "--metadata-only")
    cities, large = show(judge.home, capsys, "pull", "--all", "--rows-later")

    assert (large["dataset"], large["upToDate"]) == ("large", True)
    assert (cities["completedBlocks"], cities["portion"]) == (4, "rows-later")


def test_everything_that_shows_trust_says_that_files_are_not_here(
    home: HomeFolder, node: Node, chain: PeerChain, capsys: pytest.CaptureFixture[str]
) -> None:
    pull(node, chain, METADATA)

    (listed,) = show(home, capsys, "list")
    assert (listed["trust"], listed["absentFiles"], listed["rows"]) == ("metadata-only", 2, 6)
    (standing,) = show(home, capsys, "trust")
    assert (standing["restsOn"], standing["wouldRestOn"]) == ("metadata-only", "metadata-only")
    assert "not looked at" in standing["reason"]
    looked = show(home, capsys, "inspect", "trust", "cities")
    assert (looked["trust"], looked["absentFiles"]) == ("metadata-only", 2)
    assert listed["notChecked"] == looked["notChecked"] == looked["acceptances"][0]["notChecked"] == ["files", "rows"]
    assert "metadata-only" in looked["attestations"][0]["says"]
    assert main(["--home", str(home.path), "log", "cities", "-o", "oneline"]) == 0
    assert capsys.readouterr().out.count("(not here)") == 2
    assert main(["--home", str(home.path), "inspect", "trust", "cities"]) == 0
    assert "not here    2 files" in capsys.readouterr().out


def test_whoever_needs_the_files_is_told_how_to_get_them(
    home: HomeFolder, node: Node, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pull(node, chain, METADATA)
    for words in (["tail", "cities"], ["verify", "cities"], ["sql", "-c", "SELECT * FROM cities"]):
        assert main(["--home", str(home.path), *words]) == 3
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "lacks" in line]
        assert "'cities' lacks" in line
        assert "odf-node pull cities" in line
    target = find_layout_target(str(tmp_path / "there" / "cities"), "cities")
    assert target is not None
    with pytest.raises(ObjectsAbsentError):
        asyncio.run(node.exporting.export(held(node), target, Silence()))
    assert not (tmp_path / "there" / "cities" / "refs").exists()


def test_absent_files_are_no_damage(home: HomeFolder, node: Node, chain: PeerChain, tmp_path: Path) -> None:
    pull(node, chain, METADATA)
    damaged: list[str] = []
    state = node.scrubber.run(now=node.now, bytes_per_second=0, wait=lambda _s: False, on_damage=damaged.append)
    assert (damaged, state.damaged) == ([], ())
    assert node.sweeper.collect_garbage().ran
    repaired = asyncio.run(node.repairing.repair(held(node), [], Silence()))
    assert (repaired.is_whole, repaired.absent_objects, repaired.mended_objects) == (True, 2, 0)

    back_up(home, tmp_path / "backup", Silence().advance)
    restored = HomeFolder(tmp_path / "restored")
    restore(restored, tmp_path / "backup", Silence().advance)
    with closing(Node(restored, FixedClock(NOW))) as other:
        assert held(other).trust is Trust.METADATA
        assert pull(other, chain).record.trust is Trust.SIGNED


def test_backup_takes_unread_files_along(node: Node, home: HomeFolder, chain: PeerChain, tmp_path: Path) -> None:
    pull(node, chain, ROWS_LATER)
    back_up(home, tmp_path / "backup", Silence().advance)
    gone, kept = chain.files
    node.objects.delete(gone)
    back_up(home, tmp_path / "later", Silence().advance)

    for folder, files in (("backup", {gone, kept}), ("later", {kept})):
        restored = HomeFolder(tmp_path / f"restored-{folder}")
        restore(restored, tmp_path / folder, Silence().advance)
        with closing(Node(restored, FixedClock(NOW))) as other:
            assert set(other.objects.iter_hashes()) == files
            assert pull(other, chain).completed_files.fetched_files == 2 - len(files)


def test_file_that_was_here_and_is_lost_is_damage(node: Node, chain: PeerChain) -> None:
    pull(node, chain.up_to(2))
    pull(node, chain, METADATA)
    (lost,) = node.store.list_expected_objects()
    node.objects.delete(lost)

    damaged: list[str] = []
    node.scrubber.run(now=node.now, bytes_per_second=0, wait=lambda _s: False, on_damage=damaged.append)
    assert damaged == [str(lost)]


def test_sweep_keeps_a_file_that_may_be_absent_and_is_here(node: Node, chain: PeerChain) -> None:
    pull(node, chain)
    node.store.mark_absent(chain.id, chain.files)
    assert node.sweeper.collect_garbage().objects == 0
    assert set(node.objects.iter_hashes()) == set(chain.files)
    node.store.mark_present(chain.id, chain.files)
    assert node.store.list_absent_objects(chain.id) == frozenset()


def test_derivative_of_an_input_without_files_is_not_re_executed(node: Node, chain: PeerChain, tmp_path: Path) -> None:
    pull(node, chain, METADATA)
    derivative = PeerChain(tmp_path, name="large", key=OTHER_KEY)
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    derivative.add(select("SELECT * FROM cities", chain.id))

    with pytest.raises(ProposalRejectedError, match="lacks 2 files") as caught:
        pull(node, derivative, name="large")
    assert "ACCEPT-2" in caught.value.rule
    taken = pull(node, derivative, METADATA, name="large")
    assert (taken.record.trust, taken.unchecked) == (Trust.METADATA, ("files", "rows", "re-execution"))


@pytest.fixture
def source(tmp_path: Path, chain: PeerChain) -> str:
    """The dataset, whole, in a folder."""
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node:
        target = find_layout_target(str(tmp_path / "source" / "cities"), "cities")
        assert target is not None
        asyncio.run(node.exporting.export(publisher.keep(chain), target, Silence()))
        return target.url


def test_tail_fetches_the_last_slice_alone_and_pull_the_rest(
    home: HomeFolder, node: Node, chain: PeerChain, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pulled,) = show(home, capsys, "pull", source, "--metadata-only")
    assert (pulled["portion"], pulled["trust"], pulled["newRows"]) == ("metadata-only", "metadata-only", 6)
    _, last = chain.files

    assert [row["city"] for row in show(home, capsys, "tail", "cities", "-n", "2")] == [None, ""]
    assert set(node.objects.iter_hashes()) == {last}
    assert node.store.list_expected_objects() == {last}
    assert held(node).trust is Trust.METADATA  # some rows were looked at, not all

    (completed,) = show(home, capsys, "pull", "cities")
    assert (completed["completedBlocks"], completed["trust"]) == (4, "signed")


def test_query_needs_the_slices_of_what_it_names_up_to_its_time(node: Node, chain: PeerChain) -> None:
    pull(node, chain, METADATA)
    first, last = chain.files
    early = chain.blocks[2].system_time

    def needed(sql: str, as_of: Timestamp | None = None) -> list[frozenset[Any]]:
        return [hashes for _, hashes in node.queries.list_absent(sql, as_of=as_of)]

    assert needed("SELECT * FROM cities") == [{first, last}]
    assert needed("SELECT * FROM cities__state", early) == [{first}]
    assert needed("SELECT * FROM cities", Timestamp(early.seconds - 1)) == []
    assert needed("SELECT 1") == []


def test_verify_fetches_what_it_reads(
    home: HomeFolder, node: Node, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show(home, capsys, "pull", source, "--metadata-only")
    (finding,) = show(home, capsys, "verify", "cities")
    assert (finding["valid"], finding["rows"]) == (True, 6)
    assert node.store.list_absent_objects(held(node).id) == frozenset()
    assert held(node).trust is Trust.METADATA


def test_rows_that_nobody_checked_for_this_dataset_reach_no_program(node: Node, chain: PeerChain) -> None:
    forged = chain.replacing_slice(2, slice_table(CITIES, first_offset=0, at=Timestamp(NOW.seconds)))
    pull(node, forged, ROWS_LATER)
    bad = forged.blocks[2].event.new_data.physical_hash  # type: ignore[union-attr]
    node.objects.rows.adopt(
        bad, node.objects.get_path(bad)
    )  # as if another dataset had the file, and it was read there

    for needing in (
        lambda: node.queries.run("SELECT * FROM cities", as_of=None, max_rows=None),
        lambda: node.reader.tail(held(node), count=100),
    ):
        with pytest.raises(ObjectsAbsentError, match="brings and verifies"):
            needing()
    with pytest.raises(RejectedError, match="ROWS-3"):
        Table(node, held(node)).to_arrow()
    assert not node.objects.has(bad)


@pytest.mark.parametrize("subset", ["--metadata-only", "--rows-later"])
def test_program_reads_a_copy_that_came_without_files_or_rows(
    subset: str, home: HomeFolder, node: Node, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show(home, capsys, "pull", source, subset)
    assert Table(node, held(node)).changes(after=3).to_arrow().num_rows == 2
    assert len(node.store.list_absent_objects(held(node).id)) == 1  # what was not needed
    assert Table(node, held(node)).to_arrow().num_rows == 6
    assert node.store.list_absent_objects(held(node).id) == frozenset()


def test_slice_whose_rows_are_not_what_the_block_says_does_not_stay(
    home: HomeFolder, node: Node, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = chain.replacing_slice(2, slice_table(CITIES, first_offset=0, at=Timestamp(NOW.seconds)))
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    target = find_layout_target(str(tmp_path / "source" / "cities"), "cities")
    assert target is not None
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as other:
        asyncio.run(other.exporting.export(publisher.keep(forged), target, Silence()))
    show(home, capsys, "pull", target.url, "--metadata-only")

    assert main(["--home", str(home.path), "tail", "cities", "-n", "100"]) == 4
    assert "ROWS-3" in capsys.readouterr().err
    bad = forged.blocks[2].event.new_data.physical_hash  # type: ignore[union-attr]
    assert not node.objects.has(bad)


def test_files_of_a_root_are_not_dropped(home: HomeFolder, node: Node, chain: PeerChain) -> None:
    pull(node, chain)
    assert main(["--home", str(home.path), "cache", "drop", "cities"]) == 2
    assert set(node.objects.iter_hashes()) == set(chain.files)


def test_cache_list_says_what_is_here(home: HomeFolder, node: Node, chain: PeerChain, capsys: Any) -> None:
    pull(node, chain.up_to(2))
    pull(node, chain, METADATA)
    (row,) = show(home, capsys, "cache", "list")
    first, last = (len(content) for content in chain.files.values())
    assert (row["files"], row["bytes"]) == (2, first + last)
    assert (row["absentFiles"], row["absentBytes"], row["canBeDropped"]) == (1, last, False)


def test_file_that_came_for_another_dataset_is_not_taken_for_this_one(
    home: HomeFolder, node: Node, chain: PeerChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pull(node, chain)
    first, last = chain.files
    thief = PeerChain(tmp_path, name="thief", key=OTHER_KEY).add(
        Seed(dataset_id=dataset_of(OTHER_KEY), dataset_kind=DatasetKind.ROOT)
    )
    thief.add(chain.blocks[1].event).add(chain.blocks[2].event, at=NOW)
    pull(node, thief, METADATA, name="thief")

    assert main(["--home", str(home.path), "tail", "thief"]) == 3
    assert "lacks 1 file" in capsys.readouterr().err
    assert node.objects.has(first)
    assert node.store.list_expected_objects() == {first, last}


@pytest.mark.parametrize("subset", ["--metadata-only", "--rows-later"])
def test_what_is_taken_back_is_checked_when_the_last_rows_come(
    subset: str, home: HomeFolder, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = root_chain(tmp_path, slices=1).add_rows([("Lima", 1)], op=[1])
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as publishing:
        target = find_layout_target(str(tmp_path / "source" / "cities"), "cities")
        assert target is not None
        asyncio.run(publishing.exporting.export(publisher.keep(forged), target, Silence()))
    show(home, capsys, "pull", target.url, subset)
    # The last row alone, whose slice does not say what was given before; then all of them.
    assert [row["city"] for row in show(home, capsys, "tail", "cities", "-n", "1")] == ["Lima"]
    for _ in range(2):
        assert main(["--home", str(home.path), "tail", "cities", "-n", "100"]) == 4
        assert "ROWS-12" in capsys.readouterr().err
    assert held(node).trust is Trust.METADATA
