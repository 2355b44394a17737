"""A chain of a derivative taken apart and made anew: what is changed in it is true of nothing, and all else fits it."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odf_protocol.block import Block
from odf_protocol.events import (
    DataSlice,
    ExecuteTransform,
    OffsetInterval,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.honest_derivatives import Published
from support.offers import PeerChain, hash_of_rows, parquet_bytes

MILLISECOND = pa.timestamp("ms", "UTC")


@dataclass(frozen=True)
class Forgery:
    """A chain that is untrue from ``block`` on, and a pattern that the words of its rejection match."""

    chain: PeerChain
    block: int
    names: str
    column: str = ""


Forger = Callable[[Published, Random], Forgery | None]


def steps_of(chain: PeerChain) -> list[int]:
    """Numbers of the blocks that are steps."""
    return [b.sequence_number for b in chain.blocks if isinstance(b.event, ExecuteTransform)]


def table_of(chain: PeerChain, number: int) -> pa.Table | None:
    """Rows of a step."""
    data = step_at(chain.blocks[number]).new_data
    return None if data is None else pq.read_table(io.BytesIO(chain.files[data.physical_hash]))


def step_at(block: Block) -> ExecuteTransform:
    assert isinstance(block.event, ExecuteTransform)
    return block.event


def rebuilt(chain: PeerChain, blocks: list[tuple[Any, Timestamp]], tables: dict[int, pa.Table | None]) -> PeerChain:
    """Link and sign events anew, with other rows in some steps; later rows move on, and what says where they are.

    ``tables`` has the new rows by the position among ``blocks``. Step records of a forged history are left out: they
    are no duty, and would name what is untrue.
    """
    made = chain.copy(blocks=[], signatures=[], step_records=[], identity=chain.id)
    next_offset = 0
    for position, (event, at) in enumerate(blocks):
        if isinstance(event, ExecuteTransform):
            table = tables[position] if position in tables else rows_of(chain, event)
            event = replace(event, prev_offset=next_offset - 1 if next_offset else None, new_data=None)
            if table is not None and table.num_rows:
                event = replace(event, new_data=_put(made, table, next_offset, keep=position in tables))
                next_offset += table.num_rows
        made.add(event, at=at)
    return made


def rows_of(chain: PeerChain, event: ExecuteTransform) -> pa.Table | None:
    return None if event.new_data is None else pq.read_table(io.BytesIO(chain.files[event.new_data.physical_hash]))


def _put(chain: PeerChain, table: pa.Table, first: int, *, keep: bool) -> DataSlice:
    offsets = pa.array(range(first, first + table.num_rows), pa.int64())
    if not keep or table.column("offset").null_count:
        table = table.set_column(0, table.schema.field(0), offsets)
    content = parquet_bytes(table)
    name = Multihash.of_sha3_256(content)
    chain.files[name] = content
    return DataSlice(
        physical_hash=name,
        logical_hash=hash_of_rows(content, chain.folder),
        offset_interval=OffsetInterval(start=first, end=first + table.num_rows - 1),
        size=len(content),
    )


def events_of(chain: PeerChain) -> list[tuple[Any, Timestamp]]:
    return [(block.event, block.system_time) for block in chain.blocks]


def with_table(chain: PeerChain, number: int, table: pa.Table | None) -> PeerChain:
    return rebuilt(chain, events_of(chain), {number: table})


def with_event(chain: PeerChain, number: int, **changes: Any) -> PeerChain:
    """Change fields of a step's event, and leave everything else of the chain as it is."""
    without = chain.copy(step_records=[None] * len(chain.blocks))
    return without.replacing(number, lambda event: replace(event, **changes))


def with_rows(published: Published, random: Random, least: int = 1) -> tuple[int, pa.Table] | None:
    chain = published.chain
    found = [(n, table) for n in steps_of(chain) if (table := table_of(chain, n)) is not None]
    found = [(n, table) for n, table in found if table.num_rows >= least]
    return random.choice(found) if found else None


def numbered_anew(table: pa.Table) -> pa.Table:
    """Leave it to ``_put`` to count the rows anew."""
    return table.set_column(0, table.schema.field(0), pa.nulls(table.num_rows, pa.int64()))
