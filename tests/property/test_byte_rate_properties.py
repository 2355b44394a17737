"""Whatever moves beside each other at one rate: nobody waits long for others, and nothing is forgotten (DAEMON-20)."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from odf_node.byte_rate import MAX_DEBT_S
from support.turned_clock import TurnedClock

RATE = 10_000
WINDOW_S = 0.5
MOVES = st.lists(
    st.tuples(st.sampled_from(["take", "spend", "pay"]), st.integers(0, 60 * RATE) | st.integers(0, RATE)),
    max_size=6,
)


@given(movers=st.lists(MOVES, min_size=1, max_size=5))
def test_no_wait_is_long_and_every_byte_is_paid_for_by_whoever_moved_it(
    movers: list[list[tuple[str, int]]],
) -> None:
    clock = TurnedClock()
    rate = clock.rate(RATE)
    moved_bytes = 0

    async def move(moves: list[tuple[str, int]]) -> None:
        nonlocal moved_bytes
        for kind, size_bytes in moves:
            if kind == "pay":
                moved_bytes += size_bytes - await rate.pay(size_bytes, max_s=5)
                continue
            if kind == "take":
                await rate.wait()
                rate.take(size_bytes)
            else:
                await rate.spend(size_bytes, max_s=5)
            moved_bytes += size_bytes
            assert rate.find_wait_s() <= MAX_DEBT_S + 2 / RATE
        await rate.wait()

    async def move_all() -> None:
        async with asyncio.TaskGroup() as tasks:
            for moves in movers:
                tasks.create_task(move(moves))

    asyncio.run(move_all())
    assert max(clock.waits, default=0) <= MAX_DEBT_S + 2 / RATE
    # What is in the bucket at first, and what everybody may still be waiting for together.
    assert clock.passed_s * RATE >= moved_bytes - (WINDOW_S + MAX_DEBT_S) * RATE - 100
