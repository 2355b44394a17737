"""What a step of a derivative claims, compared with what its re-execution gave (PLAN-7)."""

from pathlib import Path

from odf_engines.contract import TransformResponse
from odf_node.rows.file_hashes import logical_hash_of, physical_hash_of
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.divergence import Divergence
from odf_protocol.events import ExecuteTransform
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import is_same


def find_divergence(
    block: Block, view: DatasetView, response: TransformResponse, published: Path | None
) -> Divergence | None:
    """Compare what the step of ``block`` claims with what its re-execution gave (PLAN-7, PLAN-19).

    Equal files are equal. Other files with one logical hash are compared value by value, as that hash has collisions.

    Args:
        block: With an ExecuteTransform event.
        view: The derivative before the step.
        response: What the engine gave.
        published: The step's slice, where it claims one; its bytes have the hash that the block states.

    Raises:
        RejectedError: The published slice cannot be compared at bounded cost.
    """
    event = block.event
    assert isinstance(event, ExecuteTransform)
    rows = event.new_data.offset_interval.row_count if event.new_data else 0
    if (event.new_data is None) != (response.data_path is None):
        found = "no rows" if response.data_path is None else "rows"
        return _plain("presence", rows, f"the step claims {rows:,} rows, re-execution gives {found}")
    if event.new_data is not None and response.data_path is not None:
        assert published is not None
        same_interval = response.offset_interval == event.new_data.offset_interval
        if not same_interval or physical_hash_of(response.data_path) != event.new_data.physical_hash:
            same_hash = reexecuted_hash_of(response) == event.new_data.logical_hash
            if same_interval and not response.is_ordered and not same_hash:
                bags = _find_other_rows(block, view, response.data_path, published)
                return bags or _find_other_state(block, view, response, rows)
            with SliceProcess() as reader:
                found_cells = reader.compare(
                    published,
                    response.data_path,
                    view.vocabulary,
                    sequence_number=block.sequence_number,
                    prev_watermark=view.watermark,
                )
            if found_cells is not None:
                return found_cells
            if not same_interval or not same_hash:
                return _plain("cells", rows, "equal values of another type or encoding")
    return _find_other_state(block, view, response, rows)


def _find_other_rows(block: Block, view: DatasetView, reexecuted: Path, published: Path) -> Divergence | None:
    """Compare slices as bags of rows, as the declared query fixes no order (PLAN-19)."""
    with SliceProcess() as reader:
        claimed, made, shared = reader.compare_bags(
            published, reexecuted, view.vocabulary, sequence_number=block.sequence_number
        )
    if claimed == made == shared:
        return None
    found = (
        f"the step claims {claimed:,} rows, re-execution gives {made:,}, and {shared:,} of them are the same in "
        "whatever order"
    )
    return Divergence("cells", (), 0, claimed, made, (), found)


def is_in_order(block: Block, response: TransformResponse) -> bool:
    """Say whether a reproduced step has its rows in the order that re-execution gave (PLAN-19)."""
    event = block.event
    assert isinstance(event, ExecuteTransform)
    if response.is_ordered or event.new_data is None:
        return True
    return reexecuted_hash_of(response) == event.new_data.logical_hash


def _find_other_state(block: Block, view: DatasetView, response: TransformResponse, rows: int) -> Divergence | None:
    event = block.event
    assert isinstance(event, ExecuteTransform)
    if response.watermark != event.new_watermark:
        return _plain(
            "watermark", rows, f"watermark: published {event.new_watermark}, re-executed {response.watermark}"
        )
    claimed = None if event.new_checkpoint is None else event.new_checkpoint.physical_hash
    made = None if response.checkpoint_path is None else physical_hash_of(response.checkpoint_path)
    if made != claimed:
        detail = f"checkpoint: published {claimed or 'none'}, made by re-execution {made or 'none'}"
        return _plain("checkpoint", rows, detail)
    if view.schema is not None and not is_same(data_schema_of(response.schema), view.schema):
        return _plain("schema", rows, "the declared query gives other columns than the published schema has")
    return None


def reexecuted_hash_of(response: TransformResponse) -> Multihash:
    """Return the logical hash of the rows that an engine gave; there are some."""
    assert response.data_path is not None
    return response.logical_hash or logical_hash_of(response.data_path)


def _plain(kind: str, rows: int, detail: str) -> Divergence:
    return Divergence(kind, (), 0, rows, rows, (), detail)
