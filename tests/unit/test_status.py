"""What ``odf-node status`` finds, and the command that it names for it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.derive.engine_usage import EngineUsage
from odf_node.records.evidence import SeenHead
from odf_node.records.quarantine import Fate, QuarantineFile, RowId, SettledRows, WaitingBatch
from odf_node.upkeep.status import NodeStatus
from odf_node.upkeep.status_findings import Condition
from odf_protocol.events import AddPushSource, DatasetKind, Seed, SetPollingSource
from odf_protocol.multihash import Multihash
from support.chains import polling_source, push_source
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY, OTHER_KEY


def found(node: Node) -> list[tuple[Condition, str | None, str, str]]:
    usage = EngineUsage(node.store, node.engine_files)
    report = NodeStatus(
        node.home,
        node.refusals,
        usage,
    )
    return [(each.condition, each.dataset, each.what, each.command) for each in report.list_findings()]


def test_sound_node_wants_nothing(node: Node, judge: Judge, tmp_path: Path) -> None:
    assert found(node) == []
    PublisherHome(judge).keep(root_chain(tmp_path))
    assert found(node) == []


def test_derivative_is_stale_while_its_input_has_rows_for_it(node: Node, judge: Judge, tmp_path: Path) -> None:
    home = PublisherHome(judge)
    root = home.keep(root_chain(tmp_path))
    derivative = PeerChain(tmp_path, name="large", key=NEW_KEY)
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    home.keep(derivative.add(select("SELECT * FROM cities", root.id)))
    assert found(node) == [(Condition.STALE, "large", "6 new rows in its inputs", "odf-node pull large")]


@pytest.mark.parametrize(
    ("sources", "what", "command"),
    [
        ([polling_source()], "it has no rows yet", "odf-node pull empty"),
        ([push_source()], "it has no rows yet", "odf-node ingest empty FILE"),
        ([], "it has no rows, and no source of any", "odf-node change empty MANIFEST"),
    ],
)
def test_root_without_rows_waits_for_some_in_the_way_that_its_sources_take_them(
    node: Node, judge: Judge, tmp_path: Path, sources: list[SetPollingSource | AddPushSource], what: str, command: str
) -> None:
    chain = PeerChain(tmp_path, name="empty", key=NEW_KEY)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT))
    for source in sources:
        chain.add(source)
    PublisherHome(judge).keep(chain)
    assert found(node) == [(Condition.WAITING, "empty", what, command)]


def test_copy_is_stale_when_a_newer_head_was_seen(node: Node, judge: Judge, tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    record = judge.accept(chain.up_to(2)).record
    newer = SeenHead(
        dataset_id=record.id,
        sequence_number=3,
        block_hash=chain.head.hash,
        raw=chain.signed_head(),
        source="http://a.example",
        seen_at=NOW,
    )
    node.store.put_seen_head(newer)
    behind = "1 block behind what http://a.example has"
    assert found(node) == [(Condition.STALE, "cities", behind, "odf-node pull cities")]


def test_lost_file_is_unsound_and_comes_before_what_waits(node: Node, judge: Judge, tmp_path: Path) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))
    set_aside = QuarantineFile(
        dataset_id=record.id,
        sequence_number=record.head.sequence_number,
        object_hash=Multihash.of_sha3_256(b"bad"),
        row_count=3,
        source="a.csv",
        created_at=NOW,
    )
    node.store.put_quarantine(set_aside)
    lost = next(iter(node.objects.iter_hashes()))
    node.objects.delete(lost)
    rows = "in quarantine: 3 rows"
    first, *others = found(node)
    assert first[0] is Condition.UNSOUND
    assert first[3] == "odf-node repair"
    assert (Condition.WAITING, "cities", rows, "odf-node quarantine show cities") in others


def test_file_of_what_is_deleted_during_the_look_is_not_lost(
    node: Node, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))

    def list_after_it_was_deleted() -> Iterator[Multihash]:
        node.store.delete_dataset(record.id)
        return iter(())

    monkeypatch.setattr(node.objects, "iter_hashes", list_after_it_was_deleted)
    assert not [each for each in found(node) if each[0] is Condition.UNSOUND]


def test_files_that_nothing_needs_are_named_with_what_frees_them(node: Node, judge: Judge, tmp_path: Path) -> None:
    PublisherHome(judge).keep(root_chain(tmp_path))
    (judge.home.staging / "left").write_bytes(b"x")
    assert found(node) == [(Condition.WAITING, None, "files that no dataset needs", "odf-node gc")]


def test_status_is_a_table_for_people_and_json_for_programs(
    judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--home", str(judge.home.path), "status"]
    assert main(words) == 0
    assert capsys.readouterr() == ("", "nothing wants doing\n")
    chain = PeerChain(tmp_path, name="empty", key=OTHER_KEY)
    PublisherHome(judge).keep(chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)))
    assert main([*words, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {
        "condition": "waiting",
        "dataset": "empty",
        "what": "it has no rows, and no source of any",
        "command": "odf-node change empty MANIFEST",
    }
    assert main(words) == 0
    assert "odf-node change empty MANIFEST" in capsys.readouterr().out


def test_rows_and_batches_count_while_they_wait_whatever_came_after_them(
    node: Node, judge: Judge, tmp_path: Path
) -> None:
    """QUAR-7: whichever ingest set it aside, until it is settled."""
    record = PublisherHome(judge).keep(root_chain(tmp_path))
    early, late = record.head.sequence_number - 1, record.head.sequence_number
    batch = WaitingBatch(file=Multihash.of_sha3_256(b"file"), why="too many bad rows", event_time=NOW)
    for number, waiting in ((early, None), (late, None), (None, batch)):
        node.store.put_quarantine(
            QuarantineFile(
                dataset_id=record.id,
                sequence_number=number,
                object_hash=Multihash.of_sha3_256(str((number, waiting)).encode()),
                row_count=3,
                source="a.csv",
                created_at=NOW,
                batch=waiting,
            )
        )
    first, second, whole = (each.id for each in node.store.iter_quarantine(record.id))

    def stated() -> list[str]:
        return [what for _, _, what, command in found(node) if command == "odf-node quarantine show cities"]

    assert stated() == ["in quarantine: 6 rows, 1 batch"]
    node.store.settle(record.id, SettledRows(fate=Fate.DROPPED, rows=tuple(RowId(second, row) for row in (1, 2, 3))))
    assert stated() == ["in quarantine: 3 rows, 1 batch"]
    rows = tuple(RowId(first, row) for row in (1, 2, 3))
    node.store.settle(record.id, SettledRows(fate=Fate.RESENT, rows=rows, batches=(whole,)))
    assert stated() == []
