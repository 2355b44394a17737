"""Who has a turn when: round robin between callers, and short turns before long ones (FLIGHT-12, PAGES-13)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odf_engines.errors import LimitExceededError
from odf_node.records.errors import TooManyWaitingError
from odf_node.semaphore import FairSemaphore, ShortestFirstSemaphore, TurnLimits

SHORT, LONG = TurnLimits(at_once=2, waiting=8), TurnLimits(at_once=2, waiting=8, own=1)


def test_caller_has_no_more_turns_at_once_than_its_own() -> None:
    async def ask() -> list[str]:
        semaphore, order, ends = FairSemaphore(lambda: LONG), list[str](), {name: asyncio.Event() for name in "abc"}

        async def have(caller: str, name: str) -> None:
            async with semaphore.ask(caller):
                order.append(name)
                await ends[name].wait()

        tasks = [asyncio.create_task(have(*each)) for each in (("one", "a"), ("one", "b"), ("other", "c"))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (sorted(order), semaphore.running, semaphore.waiting) == (["a", "c"], 2, 1)
        for event in ends.values():
            event.set()
        await asyncio.gather(*tasks)
        assert (semaphore.running, semaphore.waiting) == (0, 0)
        return order

    assert asyncio.run(ask())[-1] == "b"


Work = Callable[[float | None], Awaitable[str]]


class Costly:
    """Work that ends with its short turn, and in a long one when it is told to."""

    def __init__(self) -> None:
        self.begun, self.go, self.is_long = list[float | None](), asyncio.Event(), asyncio.Event()

    async def __call__(self, max_s: float | None) -> str:
        self.begun.append(max_s)
        if max_s is not None:
            raise LimitExceededError("wall_s", allowed=max_s)
        self.is_long.set()
        await self.go.wait()
        return "costly"


async def small(max_s: float | None) -> str:
    assert max_s == 1.0
    return "small"


def test_other_limit_than_time_is_no_reason_for_a_long_turn() -> None:
    async def fill(_max_s: float | None) -> str:
        raise LimitExceededError("memory_bytes", allowed=1)

    async def ask() -> None:
        semaphore = ShortestFirstSemaphore(SHORT, LONG, short_s=1.0)
        with pytest.raises(LimitExceededError, match="memory_bytes"):
            await semaphore.run("one", fill)

    asyncio.run(ask())


@pytest.mark.parametrize("caller", ["other", "one"])
def test_small_work_is_done_beside_any_number_of_costly_ones(caller: str) -> None:
    """Of others, and of its own caller."""

    async def ask() -> None:
        semaphore, works = ShortestFirstSemaphore(SHORT, LONG, short_s=1.0), [Costly() for _ in range(4)]
        tasks = [asyncio.create_task(semaphore.run("one", work)) for work in works]
        await asyncio.wait_for(works[0].is_long.wait(), 10)
        for _ in range(10):  # the others come to wait, as nothing else is to be done
            await asyncio.sleep(0)
        assert await semaphore.run(caller, small) == "small"
        assert not any(task.done() for task in tasks)
        assert (semaphore.long_semaphore.running, semaphore.long_semaphore.waiting) == (1, 3)
        for work in works:
            work.go.set()
        assert await asyncio.gather(*tasks) == ["costly"] * 4
        assert [work.begun for work in works] == [[1.0, None]] * 4

    asyncio.run(ask())


def test_work_that_is_known_to_be_long_has_no_short_turn() -> None:
    async def ask() -> None:
        semaphore, work = ShortestFirstSemaphore(SHORT, LONG, short_s=1.0), Costly()
        work.go.set()
        assert await semaphore.run("one", work, is_long=True) == "costly"
        assert work.begun == [None]

    asyncio.run(ask())


def test_what_waits_is_bounded_in_both_lines() -> None:
    async def ask() -> None:
        semaphore, works = ShortestFirstSemaphore(SHORT, LONG, short_s=1.0), [Costly() for _ in range(20)]
        tasks = [asyncio.create_task(semaphore.run("one", work)) for work in works]
        await asyncio.wait_for(works[0].is_long.wait(), 10)
        for _ in range(30):
            await asyncio.sleep(0)
        # Two have short turns at once and four wait for them; of these, one has a long turn and four wait.
        for work in works:
            work.go.set()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert ended.count("costly") == 5
        assert sum(isinstance(each, TooManyWaitingError) for each in ended) == 15

    asyncio.run(ask())


def test_failure_of_work_is_its_own() -> None:
    async def fail(_max_s: float | None) -> str:
        raise KeyError("gone")

    async def ask() -> None:
        semaphore = ShortestFirstSemaphore(SHORT, LONG, short_s=1.0)
        with pytest.raises(KeyError):
            await semaphore.run("one", fail)
        assert (semaphore.short_semaphore.running, semaphore.long_semaphore.running) == (0, 0)

    asyncio.run(ask())
