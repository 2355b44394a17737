"""Hash the columns of a table side by side, whoever lends the threads.

A column is hashed in the order of its rows, so at most one worker is at it; each worker takes the column that has most
left, does one chunk of it and puts it back. So several columns of unlike size end at about the same time, which a queue
of whole columns does not give: a table's text column often has half of all bytes.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, Protocol


class ColumnExecutor(Protocol):
    """What is needed of a ``concurrent.futures`` executor with threads."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]:
        """Apply ``work`` to each item."""
        ...


def run_columns(columns: Sequence[Iterator[float]], executor: ColumnExecutor | None) -> None:
    """Do the work of all columns.

    Args:
        columns: Each does one chunk per step; what it yields is about how many bytes are left, before the first chunk
            and after each.
        executor: Its threads share the work; None for one column after another.

    Raises:
        Exception: What a column raised; other columns may be at any point then.
    """
    if executor is None or len(columns) < 2:
        for column in columns:
            for _ in column:
                pass
        return
    # Ties go by index, and iterators are never compared.
    waiting = [(-left, index) for index, column in enumerate(columns) if (left := next(column, None)) is not None]
    heapq.heapify(waiting)
    turn = Lock()

    def share(_: int) -> None:
        while True:
            with turn:
                if not waiting:
                    return  # the columns that are left are in other hands, one each
                index = heapq.heappop(waiting)[1]
            left = next(columns[index], None)
            if left is not None:
                with turn:
                    heapq.heappush(waiting, (-left, index))

    for _ in executor.map(share, range(len(columns))):
        pass  # an executor's map raises what a worker raised only when its results are read
