"""The daemon's rebuilding: strangers ask, one thread works, and what failed is not tried for them again and again."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.daemon.background_rebuild import BackgroundRebuild
from odf_node.home_folder import HomeFolder
from odf_protocol.events import (
    DatasetKind,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    Seed,
    SetDataSchema,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.offers import (
    CITIES,
    CITY_SCHEMA,
    NOON,
    NOW,
    Judge,
    PeerChain,
    PublisherHome,
    hash_of_rows,
    parquet_bytes,
    root_chain,
    select,
    slice_table,
)
from support.signing import NEW_KEY, OTHER_KEY
from support.stores import find_named


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    """A root, and a dropped derivative of a dataset that is not here."""
    publisher = PublisherHome(Judge.create(tmp_path / "home"))
    publisher.keep(root_chain(tmp_path))
    source = root_chain(tmp_path, name="gone", key=OTHER_KEY)
    chain = PeerChain(tmp_path, key=NEW_KEY, name="derived")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)).add(select("SELECT 1", source.id))
    chain.add(SetDataSchema(schema=CITY_SCHEMA))
    content = parquet_bytes(slice_table(CITIES, first_offset=0, at=Timestamp(NOON.seconds + 3)))
    name = Multihash.of_sha3_256(content)
    chain.files[name] = content
    chain.add(
        ExecuteTransform(
            query_inputs=(ExecuteTransformInput(dataset_id=source.id, new_block_hash=source.head.hash, new_offset=5),),
            new_data=DataSlice(
                logical_hash=hash_of_rows(content, tmp_path),
                physical_hash=name,
                offset_interval=OffsetInterval(start=0, end=2),
                size=len(content),
            ),
        )
    )
    publisher.keep(chain)
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node:
        node.store.mark_absent(chain.id, [name])
        node.objects.delete(name)
    return publisher.judge.home


def test_what_could_not_be_computed_again_is_not_tried_for_everybody_who_asks(home: HomeFolder) -> None:
    def open_node() -> Node:
        return Node(home, FixedClock(NOW))

    with closing(open_node()) as node:
        root, derived = find_named(node.store, "cities"), find_named(node.store, "derived")
    assert root is not None
    assert derived is not None
    pool = BackgroundRebuild(open_node)
    pool.start()
    try:
        assert not pool.request(root)
        assert pool.request(derived)
        give_up_s = time.monotonic() + 60
        while pool.request(derived):  # until it was tried, and failed
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
    finally:
        pool.end()
