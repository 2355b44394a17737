"""Forgeries of an honest derivative by its own publisher: one thing is untrue, all else is made to fit it.

Hashes, sizes, offsets, links and signatures are those of what is forged. Each forger gives None where the chain has no
place for it. What it gives says what whoever rejects it has to name.
"""

from collections.abc import Callable
from random import Random

from support.forged_definitions import another_query, another_record, another_schema
from support.forged_rows import (
    all_rows_left_out,
    another_cell,
    another_event_time,
    another_operation,
    another_system_column,
    other_order,
    row_left_out,
    row_twice,
    rows_of_an_empty_step,
    rows_of_two_steps_swapped,
)
from support.forged_steps import (
    another_watermark,
    block_left_out,
    block_twice,
    checkpoint_of_nobody,
    input_field_moved,
    interval_moved,
    other_offsets,
    rows_before_the_first,
    steps_joined_without_the_rows_of_one,
)
from support.honest_derivatives import Published
from support.rebuilt_chains import Forgery

Forger = Callable[[Published, Random], Forgery | None]

FORGERS: dict[str, Forger] = {
    forger.__name__.replace("_", "-"): forger
    for forger in (
        another_cell,
        another_event_time,
        another_operation,
        another_system_column,
        other_order,
        row_left_out,
        row_twice,
        all_rows_left_out,
        rows_of_an_empty_step,
        rows_of_two_steps_swapped,
        another_watermark,
        checkpoint_of_nobody,
        rows_before_the_first,
        other_offsets,
        block_left_out,
        steps_joined_without_the_rows_of_one,
        block_twice,
        interval_moved,
        input_field_moved,
        another_query,
        another_schema,
        another_record,
    )
}
