"""Forks of a process that has a database open: none of its connections goes into the child.

SQLite's locks are the process's. A child that goes on with a connection of its parent has none of them, so the parent,
which takes itself for the last, removes the log that the child writes into, and what the child has committed is gone
without an error. Source: SQLite "How To Corrupt An SQLite Database File", section "Carrying an open database across a
fork()"; clause HOME-58 in ``spec/home.md``.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final, Self
from weakref import WeakSet

_WAIT_S: Final = 30.0  # guess: as long as a commit may wait for others


class ForkGate:
    """Is held (``with``) while a connection is lent; a fork waits until no other thread holds it, and closes the rest.

    A thread that forks with a connection of its own in hand, in the middle of a listing, takes that one along.
    """

    def __init__(self, close_idle: Callable[[], None]) -> None:
        """Begin; ``close_idle`` closes the connections that are not lent."""
        self._close_idle = close_idle
        self._changed = threading.Condition(threading.Lock())
        self._users: Counter[int] = Counter()
        self._is_forking = False
        _gates.add(self)

    def __enter__(self) -> Self:
        thread = threading.get_ident()
        with self._changed:
            while self._is_forking and thread not in self._users:
                self._changed.wait()
            self._users[thread] += 1
        return self

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        with self._changed:
            self._users[thread] -= 1
            if not self._users[thread]:
                del self._users[thread]
                self._changed.notify_all()

    def before(self) -> None:
        """Let no connection be lent until after the fork, and close those that are not."""
        self._changed.acquire()
        self._is_forking = True
        self._changed.wait_for(lambda: not self._users.keys() - {threading.get_ident()}, _WAIT_S)
        self._close_idle()

    def after(self, *, in_child: bool) -> None:
        """Go on: in the child there is this thread alone."""
        if in_child:
            for thread in self._users.keys() - {threading.get_ident()}:
                del self._users[thread]
        self._is_forking = False
        self._changed.notify_all()
        self._changed.release()


_gates: Final[WeakSet[ForkGate]] = WeakSet()
_closed: Final[list[ForkGate]] = []
"""Those that a fork holds now."""


def _before() -> None:
    for gate in list(_gates):
        gate.before()
        _closed.append(gate)


def _after(*, in_child: bool) -> None:
    while _closed:
        _closed.pop().after(in_child=in_child)


os.register_at_fork(
    before=_before,
    after_in_parent=lambda: _after(in_child=False),
    after_in_child=lambda: _after(in_child=True),
)
