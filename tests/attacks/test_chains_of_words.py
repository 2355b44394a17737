"""Chains that are long for nothing: blocks that cost their publisher little, and every reader as much again and again.

Counted is what a reader takes out of the store, not time. Source: CHAIN-53 in ``spec/chain.md``, PLAN-10 in
``spec/transform.md``.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from odf_node.datasets.chains import load_view
from odf_node.derive.query_history import HistoryRows, list_queries
from odf_protocol.dataset_view import apply, start_view
from odf_protocol.events import (
    AttachmentEmbedded,
    AttachmentsEmbedded,
    DatasetKind,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
)
from odf_protocol.multihash import Multihash
from support.offers import CITY_SCHEMA, Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, select, slice_table
from support.signing import NEW_KEY

MANY = 300


def add_words(chain: PeerChain, count: int) -> None:
    for number in range(count):
        attached = AttachmentsEmbedded(items=(AttachmentEmbedded(path="README", content=f"{number}"),))
        licensed = SetLicense(short_name=f"{number}", name="a", website_url="http://a.example")
        chain.add((SetInfo(description=f"{number}"), licensed, SetAttachments(attachments=attached))[number % 3])


class Counting:
    """A store of which it is counted what is read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.read: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)

        def ask(*query_text: Any, **options: Any) -> Any:
            answer = found(*query_text, **options)
            self.read[name] += 1
            return self._counted(name, answer) if name.startswith("iter_") else answer

        return ask

    def _counted(self, name: str, answer: Any) -> Any:
        for each in answer:
            self.read[f"{name} blocks"] += 1
            yield each


def test_words_of_a_chain_are_read_once_of_each_kind(tmp_path: Path) -> None:
    """CHAIN-53"""
    chain = root_chain(tmp_path, slices=1)
    add_words(chain, MANY)
    judge = Judge.create(tmp_path / "home")
    judge.accept(chain)
    view = start_view(chain.blocks[0])
    for block in chain.blocks[1:]:
        view = apply(view, block)

    with judge.opened() as store:
        counting = Counting(store)
        assert load_view(counting, chain.id) == view  # type: ignore[arg-type]
        assert counting.read["iter_landmarks blocks"] <= 6
        (raw,) = [raw for dataset_id, raw in store.iter_definitions() if dataset_id == chain.id]
    assert raw.count(b"README") == 1


def test_queries_are_found_behind_any_number_of_other_blocks(tmp_path: Path) -> None:
    """PLAN-10"""
    root = root_chain(tmp_path, slices=2)
    chain = PeerChain(tmp_path, key=NEW_KEY, name="derived")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
    chain.add(select("SELECT * FROM in0", root.id))
    add_words(chain, MANY)
    chain.add(SetDataSchema(schema=CITY_SCHEMA))
    for first, last in ((None, 2), (2, 3)):
        add_words(chain, MANY)
        start = chain.next_offset()
        rows = slice_table((("Oslo", 1),), first_offset=start, at=chain.blocks[-1].system_time)
        content = parquet_bytes(rows)
        data = DataSlice(
            physical_hash=Multihash.of_sha3_256(content),
            logical_hash=Multihash.of_sha3_256(b""),
            offset_interval=OffsetInterval(start=start, end=start),
            size=len(content),
        )
        read = ExecuteTransformInput(
            dataset_id=root.id,
            prev_block_hash=None if first is None else root.blocks[first].hash,
            new_block_hash=root.blocks[last].hash,
            prev_offset=None if first is None else 2,
            new_offset=3 * last - 4,
        )
        chain.add(ExecuteTransform(query_inputs=(read,), prev_offset=start - 1 if start else None, new_data=data))
    add_words(chain, MANY)
    chain.add(select("SELECT * FROM in0", root.id))
    add_words(chain, MANY)
    judge = Judge.create(tmp_path / "home")
    judge.accept(root)
    PublisherHome(judge).keep(chain)
    with judge.opened() as store:
        counting = Counting(store)
        earlier, in_force = list_queries(counting, chain.id)  # type: ignore[arg-type]
        assert list_queries(store, chain.id, most=1) == [in_force]

    assert (earlier.steps, earlier.made, earlier.read) == (2, HistoryRows(0, 1), ((root.id, HistoryRows(0, 5)),))
    assert (in_force.steps, in_force.made, in_force.read) == (0, None, ((root.id, None),))
    assert counting.read["find_block_by_number"] < 20
    assert counting.read["count_blocks"] < 300
