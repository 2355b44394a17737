"""A window whose query is replaced in the middle of a chain: windows of the new one rest on the inputs alone.

Source: PLAN-9 and PLAN-10 in ``spec/transform.md``, WINDOW-7 and WINDOW-10 in ``spec/extensions/event-windows.md``.
"""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_protocol.events import AddData, DatasetKind, ExecuteTransform, Seed
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp
from support.offers import NOON, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY

pytestmark = pytest.mark.spark

MINUTE_MS = 60_000
QUERY = "SELECT window.end AS event_time, count(*) AS n FROM in0 GROUP BY window(event_time, '{} hours')"


def gain(root: PeerChain, minutes: list[int], hour: int) -> None:
    """Add rows of these minutes after noon, and a block that states a watermark."""
    first = root.next_offset()
    root.add_rows([("Oslo", 1)] * len(minutes), event_time=[NOON.unix_ms + MINUTE_MS * each for each in minutes])
    mark = Timestamp(NOON.seconds + 3600 * hour)
    root.add(AddData(prev_offset=first + len(minutes) - 1, new_watermark=mark))


def windows_of(chain: PeerChain) -> list[tuple[int, int]]:
    """End in hours after noon, and count, of each window in the order given."""
    found = []
    for block in chain.blocks:
        if isinstance(block.event, ExecuteTransform) and block.event.new_data is not None:
            table = pq.read_table(io.BytesIO(chain.files[block.event.new_data.physical_hash]))
            ends = table.column("event_time").cast(pa.int64()).to_pylist()
            counts = table.column("n").to_pylist()
            found += [((end - NOON.unix_ms) // (60 * MINUTE_MS), n) for end, n in zip(ends, counts, strict=True)]
    return found


def test_windows_after_a_query_was_replaced_count_the_rows_before_it_and_are_re_executed(spark_session, tmp_path: Path):
    (tmp_path / "peer").mkdir()
    home = PublisherHome(Judge.create(tmp_path / "peer" / "home", spark_session))
    root = root_chain(tmp_path / "peer", slices=0)
    chain = PeerChain(tmp_path / "peer", key=NEW_KEY, name="view")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)).add(select(QUERY.format(1), root.id))
    home.keep(chain)
    read = []
    for step, (minutes, hour) in enumerate([([10, 20, 70], 1), ([90, 130], 2), ([160, 190], 4), ([250], 6)]):
        gain(root, minutes, hour)
        home.keep(root)
        at = Timestamp(NOON.seconds + 1000 + 10 * step)
        if step == 2:
            chain.add(select(QUERY.format(2), root.id), at=at)
            home.keep(chain)
        read.append(home.run(chain, at=at).read_rows)
    assert windows_of(chain) == [(1, 2), (2, 2), (4, 3), (6, 1)]
    # The third step needs what is since noon, the fourth what is since two: not the first subset.
    assert read == [3, 5, 7, 5]

    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(root)
    position = len(chain.blocks) - 1
    honest = pq.read_table(io.BytesIO(chain.files[chain.blocks[position].event.new_data.physical_hash]))
    more = honest.set_column(honest.column_names.index("n"), honest.schema.field("n"), pa.array([2], pa.int64()))
    forged = chain.replacing_slice(position, more)
    judge.reject(forged.proposal(), forged.files, rule="PLAN-7")

    judge.accept(chain)
    record = judge.record("view")
    assert record is not None
    assert (record.head, record.trust) == (chain.head, Trust.REEXECUTED)
