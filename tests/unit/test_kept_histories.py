"""What was read of an input's chain is kept for its next steps, and is of that chain alone."""

from pathlib import Path

from odf_node.datasets.engine_rows import EngineRows
from odf_node.derive.whole_inputs import WholeInputs
from odf_protocol.events import AddData
from support.offers import CITIES, MORE_CITIES, NOON, Judge, PeerChain, PublisherHome, root_chain


def test_chain_that_differs_from_the_one_that_was_read_before_is_read_anew(tmp_path: Path) -> None:
    base = root_chain(tmp_path, slices=0)
    one = base.copy().add_rows(CITIES).add(AddData(prev_offset=2, new_watermark=NOON))
    other = base.copy().add_rows(MORE_CITIES).add_rows(CITIES).add(AddData(prev_offset=5, new_watermark=NOON))
    longer = one.copy().add_rows(MORE_CITIES)
    found = [read(chain, tmp_path / str(number)) for number, chain in enumerate((one, longer, one, other, longer))]
    assert found == [([2], [2], 3), ([2, 5], [2], 4), ([2], [2], 3), ([2, 5], [5], 4), ([2, 5], [2], 4)]


def read(chain: PeerChain, folder: Path) -> tuple[list[int], list[int | None], int]:
    """Last offsets of slices and before watermarks, and the last block, of a chain in a home of its own."""
    judge = Judge.create(folder)
    record = PublisherHome(judge).keep(chain)
    with judge.opened() as store:
        whole = WholeInputs(store, EngineRows(store, judge.objects, judge.engines.rows))
        history = whole._read_history(chain.id, record.head.sequence_number)
        slices = [data.offset_interval.end for _, data in history.slices]
        return slices, [mark.last_offset for _, mark in history.watermarks], history.upto
