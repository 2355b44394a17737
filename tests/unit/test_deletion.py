"""Deleting: nothing of a dataset stays but what others need."""

from pathlib import Path

from odf_node.composition import Node
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.events import DatasetKind, Seed, SetDataSchema
from support.offers import CITIES, CITY_SCHEMA, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY, NODE_KEY, OTHER_KEY
from support.stores import find_named


def derived(folder: Path, name: str, key: bytes, *inputs: DatasetId) -> PeerChain:
    chain = PeerChain(folder, key=key, name=name)
    seed = Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)
    return chain.add(seed).add(select("SELECT * FROM in0", *inputs))


def test_deleted_dataset_leaves_neither_chain_nor_key_nor_files(node: Node, judge: Judge, tmp_path: Path) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))

    node.deletion.delete(record)

    assert node.store.list_datasets() == ()
    assert node.keys.find_dataset_key(record.id) is None
    assert list(node.objects.iter_hashes()) == []


def test_files_that_another_dataset_names_too_stay(node: Node, judge: Judge, tmp_path: Path) -> None:
    one = root_chain(tmp_path)
    # The same rows at the same time make the same file.
    other = PeerChain(tmp_path, key=OTHER_KEY, name="towns")
    other.add(Seed(dataset_id=other.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=CITY_SCHEMA))
    other.add_rows(CITIES)
    assert set(other.files) < set(one.files)
    first, _second = PublisherHome(judge).keep(one), PublisherHome(judge).keep(other)

    node.deletion.delete(first)

    assert set(node.objects.iter_hashes()) == set(other.files)
    assert [record.name for record in node.store.list_datasets()] == ["towns"]


def test_deleting_what_was_pulled_touches_no_key(node: Node, judge: Judge, tmp_path: Path) -> None:
    own = PublisherHome(judge).keep(root_chain(tmp_path, key=OTHER_KEY, name="own"))
    pulled = judge.accept(root_chain(tmp_path)).record

    node.deletion.delete(pulled)

    assert node.keys.find_dataset_key(own.id) is not None


def test_derivatives_that_would_lose_an_input_are_named(node: Node, judge: Judge, tmp_path: Path) -> None:
    home = PublisherHome(judge)
    root = home.keep(root_chain(tmp_path))
    middle = home.keep(derived(tmp_path, "middle", NEW_KEY, root.id))
    home.keep(derived(tmp_path, "top", NODE_KEY, middle.id, root.id))

    def readers(*going: DatasetRecord) -> list[tuple[str, str]]:
        return sorted((one.name, other.name) for one, other in node.deletion.find_readers(going))

    assert readers(root) == [("cities", "middle"), ("cities", "top")]
    assert readers(root, middle) == [("cities", "top"), ("middle", "top")]
    top = find_named(node.store, "top")
    assert top is not None
    assert readers(root, middle, top) == []
    assert readers(top) == []


def test_rejections_survive_a_deletion(node: Node, judge: Judge, tmp_path: Path) -> None:
    chain = root_chain(tmp_path)
    lying = chain.copy()
    lying.signatures[1] = None
    report = judge.reject(lying.proposal(), lying.files, rule="SIG-1")

    node.deletion.delete(judge.accept(chain).record)

    assert node.refusals.get_report(report["id"])["rule"] == report["rule"]
