"""Forgeries of what a step of a derivative says beside its rows, of its blocks, and of what it says it read."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from odf_protocol.events import (
    Checkpoint,
    OffsetInterval,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.honest_derivatives import Published
from support.offers import PeerChain
from support.rebuilt_chains import (
    Forgery,
    events_of,
    rebuilt,
    step_at,
    steps_of,
    with_event,
    with_rows,
)

# What a step says beside its rows


def another_watermark(published: Published, random: Random) -> Forgery | None:
    """A watermark that nobody stated, that is a little other, or that is left out."""
    chain = published.chain
    number = random.choice(steps_of(chain))
    event = step_at(chain.blocks[number])
    mark = event.new_watermark
    if mark is None:
        forged: Timestamp | None = Timestamp.from_unix_ms(1_714_564_800_000 + random.randint(0, 10_000))
    else:
        moved = mark.unix_ms + random.choice((-1, 1, 3_600_000))
        forged = random.choice((None, Timestamp.from_unix_ms(moved)))
    if forged is None and event.new_data is None:
        return None
    # Of a step that says nothing else, one that is left where it was is no step (CHAIN-14).
    return Forgery(with_event(chain, number, new_watermark=forged), number, "watermark|CHAIN-14")


def checkpoint_of_nobody(published: Published, random: Random) -> Forgery | None:
    """A state that no engine of ours makes."""
    chain, number = published.chain, random.choice(steps_of(published.chain))
    content = random.randbytes(20)
    made = Checkpoint(physical_hash=Multihash.of_sha3_256(content), size=len(content))
    events = events_of(chain)
    events[number] = (replace(events[number][0], new_checkpoint=made), events[number][1])
    following = [step for step in steps_of(chain) if step > number][:1]
    for step in following:
        events[step] = (replace(events[step][0], prev_checkpoint=made.physical_hash), events[step][1])
    forged = rebuilt(chain, events, {})
    forged.files[made.physical_hash] = content
    return Forgery(forged, number, "checkpoint")


def rows_before_the_first(published: Published, random: Random) -> Forgery | None:
    """All offsets moved on, as if rows had been before them (CHAIN-18 lets foreign chains do so)."""
    chain = published.chain
    forged = with_event(chain, steps_of(chain)[0], prev_offset=random.randint(0, 9))
    return Forgery(forged, steps_of(chain)[0], "PLAN-15|CHAIN-1[79]")


def other_offsets(published: Published, random: Random) -> Forgery | None:
    """A slice that says it stands elsewhere."""
    if (found := with_rows(published, random)) is None:
        return None
    number = found[0]
    data = step_at(published.chain.blocks[number]).new_data
    assert data is not None
    start, end = data.offset_interval.start, data.offset_interval.end
    moves = [(start, end + 1), (start + 1, end + 1)] + ([(start, end - 1)] if end > start else [])
    first, last = random.choice(moves)
    wrong = replace(data, offset_interval=OffsetInterval(start=first, end=last))
    return Forgery(with_event(published.chain, number, new_data=wrong), number, "CHAIN-1[79]|ROWS-2")


# Blocks


def block_left_out(published: Published, random: Random) -> Forgery | None:
    """A step that never was, with or without rows; the others as they are, and offsets that fit."""
    chain = published.chain
    steps = steps_of(chain)
    if len(steps) < 2:
        return None
    number = random.choice(steps[:-1])
    events = events_of(chain)
    del events[number]
    return Forgery(rebuilt(chain, events, {}), number, "CHAIN-28|PLAN-9")


def steps_joined_without_the_rows_of_one(published: Published, random: Random) -> Forgery | None:
    """A step that says it read what the one before it read as well, which is left out with its rows."""
    chain = published.chain
    steps = steps_of(chain)
    pairs = [(a, b) for a, b in pairwise(steps) if step_at(chain.blocks[a]).new_data is not None]
    if not pairs or published.kind.shows != "rows":
        return None
    first, second = random.choice(pairs)
    a, b = step_at(chain.blocks[first]), step_at(chain.blocks[second])
    read = tuple(
        replace(
            later,
            prev_block_hash=earlier.prev_block_hash,
            prev_offset=earlier.prev_offset,
            new_block_hash=later.new_block_hash or earlier.new_block_hash,
            new_offset=later.new_offset if later.new_offset is not None else earlier.new_offset,
        )
        for earlier, later in zip(a.query_inputs, b.query_inputs, strict=True)
    )
    events = events_of(chain)
    events[second] = (replace(b, query_inputs=read), events[second][1])
    del events[first]
    return Forgery(rebuilt(chain, events, {}), first, "rows published|rows differ|claims 0 rows")


def block_twice(published: Published, random: Random) -> Forgery | None:
    """A step once more, with its rows."""
    chain, number = published.chain, random.choice(steps_of(published.chain))
    events = events_of(chain)
    events.insert(number + 1, events[number])
    return Forgery(rebuilt(chain, events, {}), number + 1, "CHAIN-(14|2[678])|PLAN-9")


# What a step says it read


def interval_moved(published: Published, random: Random) -> Forgery | None:
    """The end of what a step read, and the beginning of the next, at another block of the input."""
    chain, shows = published.chain, published.kind.shows
    steps = steps_of(chain)
    if len(steps) < 2 or not shows:
        return None
    (root,), at = published.roots, random.randrange(len(steps) - 1)
    (first,), (then,) = (step_at(chain.blocks[n]).query_inputs for n in steps[at : at + 2])
    number_of = {block.hash: block.sequence_number for block in root.blocks}
    ends = number_of[first.new_block_hash or first.prev_block_hash]  # type: ignore[index]
    start = -1 if first.prev_block_hash is None else number_of[first.prev_block_hash]
    last = number_of[then.new_block_hash] if then.new_block_hash is not None else ends
    choices = [n for n in range(max(start + 1, 2), last) if n != ends]
    # Between the two places lies a block that shows where it was read.
    choices = [n for n in choices if any(_shows(root, m, shows) for m in range(min(n, ends) + 1, max(n, ends) + 1))]
    if not choices:
        return None
    end = random.choice(choices)
    block, row = root.blocks[end].hash, _last_row(root, end)
    events = events_of(chain)
    for step, changes in (
        (steps[at], {"new_block_hash": block, "new_offset": None if row == first.prev_offset else row}),
        (
            steps[at + 1],
            {"prev_block_hash": block, "prev_offset": row, "new_offset": (then_last := _last_row(root, last))},
        ),
    ):
        if step == steps[at + 1] and then_last == row:
            changes["new_offset"] = None
        read = replace(step_at(chain.blocks[step]).query_inputs[0], **changes)  # type: ignore[arg-type]
        events[step] = (replace(events[step][0], query_inputs=(read,)), events[step][1])
    return Forgery(rebuilt(chain, events, {}), steps[at], "PLAN-7|block \\d+ is not what")


def _shows(root: PeerChain, number: int, shows: str) -> bool:
    event: Any = root.blocks[number].event
    return getattr(event, "new_data" if shows == "rows" else "new_watermark", None) is not None


def _last_row(root: PeerChain, number: int) -> int | None:
    ends = [
        event.new_data.offset_interval.end
        for block in root.blocks[: number + 1]
        if (event := block.event) and getattr(event, "new_data", None) is not None
    ]  # type: ignore[union-attr]
    return ends[-1] if ends else None


def input_field_moved(published: Published, random: Random) -> Forgery | None:
    """One field of what a step read, which nothing else fits."""
    chain = published.chain
    number = random.choice(steps_of(chain))
    event = step_at(chain.blocks[number])
    place = random.randrange(len(event.query_inputs))
    read, root = event.query_inputs[place], published.roots[place]
    other = random.choice([block.hash for block in root.blocks] + [Multihash.of_sha3_256(random.randbytes(9))])
    name = random.choice(("prev_block_hash", "new_block_hash", "prev_offset", "new_offset", "dataset_id"))
    value: Any = {"dataset_id": chain.id, "prev_block_hash": other, "new_block_hash": other}.get(name)
    if value is None:
        value = (getattr(read, name) or 0) + random.choice((1, 2))
        value = random.choice((None, value))
    if getattr(read, name) == value or (name == "new_block_hash" and _means_the_same(root, read, other)):
        return None
    reads = list(event.query_inputs)
    reads[place] = replace(read, **{name: value})
    forged = with_event(chain, number, query_inputs=tuple(reads))
    return Forgery(forged, number, "CHAIN-(1[34]|2[5-9])|PLAN-(5|9|7|10)|ACCEPT-[27]|input .* has no block|is not what")


def _means_the_same(root: PeerChain, read: Any, other: Multihash) -> bool:
    """Whether blocks without rows and watermarks are all that lies between two ends."""
    numbers = {block.hash: block.sequence_number for block in root.blocks}
    if other not in numbers:
        return False
    ends = numbers[read.new_block_hash or read.prev_block_hash]
    low, high = sorted((numbers[other], ends))
    return not any(_shows(root, n, each) for n in range(low + 1, high + 1) for each in ("rows", "marks"))
