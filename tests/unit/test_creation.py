"""Creating datasets from snapshots: all or nothing as far as it can be known before, inputs first."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.datasets.chains import iter_decoded, load_view
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.trust.verifying import Verifier
from odf_protocol.events import DatasetKind, MergeStrategyLedger, SetInfo, SetTransform, TransformInput
from odf_protocol.manifest import DatasetSnapshot
from support.chains import polling_source, push_source, sql
from support.signing import NOON
from support.stores import find_named


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(HomeFolder(tmp_path / "home"), FixedClock(NOON))
    yield node
    node.close()


def root(name: str) -> DatasetSnapshot:
    return DatasetSnapshot(name=name, kind=DatasetKind.ROOT, metadata=(push_source(),))


def derived(name: str, *inputs: str, aliases: Sequence[str | None] = ()) -> DatasetSnapshot:
    given = [*aliases, *[None] * (len(inputs) - len(aliases))]
    listed = tuple(TransformInput(dataset_ref=each, alias=alias) for each, alias in zip(inputs, given, strict=True))
    event = SetTransform(inputs=listed, transform=sql("SELECT 1"))
    return DatasetSnapshot(name=name, kind=DatasetKind.DERIVATIVE, metadata=(event,))


def create(node: Node, *snapshots: DatasetSnapshot) -> list[str]:
    return [record.name for record in node.creator.create_all(snapshots, system_time=NOON)]


def test_inputs_are_made_before_what_reads_them(node: Node) -> None:
    names = create(node, derived("top", "middle", "base"), derived("middle", "BASE"), root("base"))

    assert names == ["base", "middle", "top"]


def test_names_of_inputs_become_identities_and_missing_aliases_the_names_as_written(node: Node) -> None:
    create(node, root("base"), derived("top", "Base"))

    top = find_named(node.store, "top")
    assert top is not None
    transform = load_view(node.store, top.id).transform
    assert transform is not None
    base = find_named(node.store, "base")
    assert base is not None
    assert [(item.dataset_ref, item.alias) for item in transform.inputs] == [(str(base.id), "Base")]


def test_input_may_be_named_by_its_identity(node: Node) -> None:
    create(node, root("base"))
    base = find_named(node.store, "base")
    assert base is not None

    assert create(node, derived("top", str(base.id), aliases=["b"])) == ["top"]


def test_new_dataset_is_ours_signed_and_valid(node: Node) -> None:
    create(node, root("base"))

    record = find_named(node.store, "base")
    assert record is not None
    assert record.origin is Origin.OWN
    assert node.keys.find_dataset_key(record.id) is not None
    assert [block.system_time for block in iter_decoded(node.store, record.id)] == [NOON, NOON]
    finding = Verifier(node.home, node.engines).verify(record, replay=True, on_progress=Silence().on_progress)
    assert (finding.is_valid, finding.signed, finding.blocks) == (True, True, 2)


@pytest.mark.parametrize(
    ("snapshots", "error", "words"),
    [
        ([root("a"), root("A")], UsageError, "defined twice"),
        ([root("new"), root("Taken")], UsageError, "there is a dataset 'taken' already"),
        ([root("new"), derived("top", "nowhere")], UnknownDatasetError, "'top' reads 'nowhere'"),
        ([root("new"), derived("x", "y"), derived("y", "x")], UsageError, "in a circle: x, y"),
        ([root("new"), derived("x", "y"), derived("y", "z"), derived("z", "x")], UsageError, "in a circle"),
        ([root("new"), derived("self", "self")], UsageError, "in a circle: self"),
    ],
)
def test_mistake_anywhere_is_found_before_anything_is_made(
    node: Node, snapshots: list[DatasetSnapshot], error: type[Exception], words: str
) -> None:
    create(node, root("taken"))
    keys = sorted(node.home.folder.keys.rglob("*"))

    with pytest.raises(error, match=words):
        create(node, *snapshots)

    assert [record.name for record in node.store.list_datasets()] == ["taken"]
    assert sorted(node.home.folder.keys.rglob("*")) == keys


def replace_root(node: Node, snapshot: DatasetSnapshot) -> DatasetRecord:
    added = node.creator.add_all([snapshot], node.clock, replaces=True)
    ((_, record),) = added.changed
    assert added.created == ()
    return record


def test_manifest_again_changes_what_it_says_otherwise_and_keeps_identity_and_history(node: Node) -> None:
    (before,) = node.creator.create_all([root("base")], system_time=NOON)
    first = [block.hash for block in iter_decoded(node.store, before.id)]
    sources = push_source(merge=MergeStrategyLedger(primary_key=("a",))), push_source("more")
    fixed = DatasetSnapshot(name="BASE", kind=DatasetKind.ROOT, metadata=(SetInfo(description="x"), *sources))
    after = replace_root(node, fixed)
    view = load_view(node.store, after.id)
    assert after.id == before.id
    assert [block.hash for block in iter_decoded(node.store, after.id)][: len(first)] == first
    assert tuple(view.push_sources.values()) == sources
    assert view.info == SetInfo(description="x")
    # The same again is no change.
    assert replace_root(node, fixed).head == after.head


def test_source_that_the_manifest_has_no_more_is_not_taken_away(node: Node) -> None:
    create(node, root("base"))
    head = find_named(node.store, "base")
    polled = DatasetSnapshot(name="base", kind=DatasetKind.ROOT, metadata=(polling_source(),))
    with pytest.raises(UsageError, match="not be taken away"):
        replace_root(node, polled)
    assert find_named(node.store, "base") == head


def test_dataset_of_another_kind_or_of_somebody_else_is_not_replaced(node: Node) -> None:
    create(node, root("base"))
    head = find_named(node.store, "base")
    for check in (node.creator.check_all, partial(node.creator.add_all, clock=node.clock)):
        with pytest.raises(UsageError, match="is a root dataset and stays one"):
            check([derived("base", "other"), root("other")], replaces=True)
    assert find_named(node.store, "base") == head


def test_manifest_that_cannot_be_taken_leaves_those_beside_it_undone(node: Node) -> None:
    create(node, root("first"), root("second"))
    before = node.store.list_datasets()
    fixed = DatasetSnapshot(name="first", kind=DatasetKind.ROOT, metadata=(SetInfo(description="x"), push_source()))
    refused = DatasetSnapshot(name="second", kind=DatasetKind.ROOT, metadata=(polling_source(),))
    with pytest.raises(UsageError, match="not be taken away"):
        node.creator.add_all([fixed, refused, root("third")], node.clock, replaces=True)
    assert node.store.list_datasets() == before


def test_query_is_replaced_before_its_first_rows(node: Node) -> None:
    create(node, root("base"), derived("top", "base"))
    other = SetTransform(inputs=(TransformInput(dataset_ref="base", alias="b"),), transform=sql("SELECT 2"))
    after = replace_root(node, DatasetSnapshot(name="top", kind=DatasetKind.DERIVATIVE, metadata=(other,)))
    transform = load_view(node.store, after.id).transform
    assert transform is not None
    assert transform.transform == sql("SELECT 2")
