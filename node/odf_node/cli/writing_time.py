"""The time that a command writes with, and a word where the machine's clock cannot be right."""

from typing import Final

from odf_node.cli.context import Context
from odf_node.datasets.writer import find_writing_time
from odf_node.ports import DatasetRecord
from odf_protocol.timestamp import Timestamp

TOLERATED_S: Final = 2  # guess: what time services correct at once without anybody noticing


def tell_writing_time(context: Context, record: DatasetRecord) -> Timestamp:
    """Return the time of the dataset's next block; warn where the clock is behind the newest one."""
    node = context.node
    time, shown = find_writing_time(node.chains, node.clock, record.id), node.now()
    if time.seconds - shown.seconds > TOLERATED_S:
        context.console.warn(
            f"this machine's clock shows {shown}, which is before the newest block of '{record.name}'; "
            f"what is written now bears the time of that block, {time}: set the clock right"
        )
    return time
