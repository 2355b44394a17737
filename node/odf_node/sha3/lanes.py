"""Messages of several threads, taken in together by one of them.

A thread that has bytes to hash *leads*, unless another leads already and has lanes to spare: then it waits, and the
leader takes its message along from the next step on. A leader whose own message is done hands what is left to the
thread of a message that is not. So nobody waits for bytes that came after its own, and there are no threads but those
that have something to hash.

The lock guards who waits and who leads, and is held for moments. What must hold under it:

- As many lanes are free in the groups of leaders as messages wait, or more; so each is taken along at a next step.
- A message stands in one group or waits, until its thread is woken because it is done or is to lead.
- Whoever leads leaves its group in order, whatever happens to it. A record tells by itself how far its message is, as
  the program moves it on with the state, so the next leader goes on just there.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from odf_node.sha3.compiled import Message, Programs
from odf_node.sha3.keccak import RATE_BYTES

_SHARED_BLOCKS: Final = 64 * 1024 // RATE_BYTES
"""Fewer blocks are taken in without a look at other threads: waking one takes about as long (measured)."""

_FIRST_STEP_BLOCKS: Final = 64 * 1024 // RATE_BYTES
"""What a leader takes in before it looks for others the first time; from then on twice as much each time (measured)."""

_STEP_BLOCKS: Final = 1024 * 1024 // RATE_BYTES
"""What it takes in of each message at most, and at once where there are several: 2 ms or less. Each step waits for the
interpreter once, which other threads may hold for longer (measured)."""


@dataclass(eq=False, slots=True)
class _Turn:
    """A thread's wish to have the blocks of its message taken in."""

    message: Message
    woken: threading.Lock = field(default_factory=threading.Lock)
    """Released to wake the thread."""
    leads: "_Group | None" = None
    """The group that the thread is to lead once it is woken."""


@dataclass(eq=False, slots=True)
class _Group:
    """Messages that are taken in together; the turn of the leader's own is among them."""

    turns: list[_Turn]


class Lanes:
    """Takes blocks into messages; used by any number of threads at once, each with messages of its own."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self.forget_threads()

    def forget_threads(self) -> None:
        """Begin anew: in a forked process, where all threads but one are gone, and with them what they held."""
        self._lock = threading.Lock()
        self._groups: set[_Group] = set()
        self._waiting: deque[_Turn] = deque()

    def absorb(self, message: Message, data_address: int, blocks: int) -> None:
        """Take ``blocks`` blocks of 136 bytes from ``data_address``, which stay as they are until this returns.

        After an exception an unknown part of them is taken in.
        """
        message.point_to(data_address, blocks)
        # Signals raise exceptions in the main thread, between any two steps of it: nobody must depend on what it does
        # next, and it must not leave while another thread reads its bytes.
        if blocks < _SHARED_BLOCKS or threading.current_thread() is threading.main_thread():
            self._programs.absorb([message], blocks)
            return
        own = _Turn(message)
        with self._lock:
            free = sum(self._programs.lanes - len(group.turns) for group in self._groups)
            waits = free > len(self._waiting)
            if waits:
                own.woken.acquire()
                self._waiting.append(own)
            else:
                own.leads = _Group([own])
                self._groups.add(own.leads)
        if waits:
            own.woken.acquire()
        if own.leads is not None:
            self._lead(own.leads, own)

    def _lead(self, group: _Group, own: _Turn) -> None:
        most = _FIRST_STEP_BLOCKS
        try:
            while own.message.blocks_left:
                with self._lock:
                    for turn in [turn for turn in group.turns if not turn.message.blocks_left]:
                        group.turns.remove(turn)
                        turn.woken.release()
                    while self._waiting and len(group.turns) < self._programs.lanes:
                        group.turns.append(self._waiting.popleft())
                messages = [turn.message for turn in group.turns]
                if len(messages) > 1:
                    most = _STEP_BLOCKS
                self._programs.absorb(messages, min(most, *(message.blocks_left for message in messages)))
                most = min(2 * most, _STEP_BLOCKS)
        finally:
            self._leave(group, own)

    def _leave(self, group: _Group, own: _Turn) -> None:
        with self._lock:
            group.turns.remove(own)
            if not group.turns and self._waiting:
                # It waits because this group had a lane for it.
                group.turns.append(self._waiting.popleft())
            if group.turns:
                # Also to one that is done: it goes at once and hands on.
                group.turns[0].leads = group
                group.turns[0].woken.release()
            else:
                self._groups.remove(group)
