"""How datasets stand in their schedules, and until when hosts are left alone. Pure; the time is passed in.

Source: clauses SCHED-4 to SCHED-7 and SCHED-12 in ``spec/plug-ins/schedules.md``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from odf_node.configuration.declaration import HostSettings
from odf_node.configuration.schedule_times import Every, Timing, find_next_ms, parse_every, spread_ms
from odf_protocol.names import fits_pattern

MAX_ATTEMPTS: Final = 5  # guess: a quarter of an hour, which most restarts and moves of a server take less than
FIRST_WAIT_MS: Final = 60_000  # guess
MAX_SPREAD_MS: Final = 60_000  # guess: the moment that all the world's cron jobs have in common is over
LONGEST_WAIT_MS: Final = FIRST_WAIT_MS * 2 ** (MAX_ATTEMPTS - 2) + MAX_SPREAD_MS
MAX_TEXT: Final = 500
"""Characters of a failure that are kept.  # guess: a sentence with an address in it"""


class RunOutcome(StrEnum):
    """What became of a pull by a schedule."""

    UPDATED = "updated"
    UP_TO_DATE = "up-to-date"
    UNAVAILABLE = "unavailable"
    """Something that comes back did not answer; the pull is repeated soon."""
    FAILED = "failed"
    """It would fail again, or was unavailable too often; it waits for the next regular time."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A pull that ended; ``text`` says why it failed, ``blocks`` how many were added.

    ``rest_s`` is for how long the source asked to be left alone. ``rows`` says of an ingest what became of its rows,
    ``quarantined_rows`` how many of them were set aside (ING-46).
    """

    result: RunOutcome
    text: str = ""
    blocks: int = 0
    rest_s: int = 0
    rows: str = ""
    quarantined_rows: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """How a dataset stands; times are milliseconds since 1970.

    Attributes:
        due_ms: When it is pulled next; None: not before something that it rests on was pulled, or never.
        attempts: How often it was tried in vain since its last regular time.
        ended_ms: When the last pull ended; None: there was none.
        result: What became of that.
        text: Why it failed.
        well_ms: When a pull last ended well.
    """

    due_ms: int | None = None
    attempts: int = 0
    ended_ms: int | None = None
    result: RunOutcome | None = None
    text: str = ""
    well_ms: int | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last pull did not end well."""
        return self.result in {RunOutcome.UNAVAILABLE, RunOutcome.FAILED}


def bring_forward(standing: Standing, timing: Timing | None, now_ms: int, key: bytes) -> Standing:
    """Return the standing with a time that a schedule, as it is now, and a clock, as it is now, can mean (SCHED-6).

    A time that was missed stays, so that it is made up for once. One that lies further ahead than the next one, counted
    from now, was set by another schedule or another clock, and is replaced by that.
    """
    if standing.due_ms is None and standing.ended_ms is None and isinstance(timing, Every):
        return replace(standing, due_ms=now_ms)
    next_ms = None if timing is None else find_next_ms(timing, now_ms)
    if standing.due_ms is None:
        return replace(standing, due_ms=None if next_ms is None else _spread(now_ms, next_ms, key))
    times_ms = [] if next_ms is None else [next_ms + MAX_SPREAD_MS]
    if timing is None or standing.attempts:
        times_ms.append(now_ms + LONGEST_WAIT_MS)
    if standing.due_ms <= max(times_ms, default=standing.due_ms):
        return standing
    return replace(standing, due_ms=max(times_ms) if next_ms is None else _spread(now_ms, next_ms, key))


def settle(
    standing: Standing, ended: RunEnded, timing: Timing | None, began_ms: int, now_ms: int, key: bytes
) -> Standing:
    """Return how a dataset stands after a pull (SCHED-5).

    Args:
        standing: Before it.
        ended: What became of it.
        timing: Its schedule; None: it follows what it rests on.
        began_ms: When the pull began, from where an interval counts.
        now_ms: When it ended, from where waiting for what failed counts.
        key: By which datasets differ, for the spread.
    """
    after = Standing(None, 0, now_ms, ended.result, ended.text[:MAX_TEXT], standing.well_ms)
    if not after.is_failing:
        due_ms = None if timing is None else find_next_spread_ms(timing, began_ms, key)
        return replace(after, due_ms=due_ms, well_ms=now_ms)
    attempts = standing.attempts + 1
    if ended.result is RunOutcome.UNAVAILABLE and attempts < MAX_ATTEMPTS:
        wait_ms = FIRST_WAIT_MS * 2 ** (attempts - 1)
        return replace(after, attempts=attempts, due_ms=_spread(now_ms, now_ms + wait_ms, key))
    due_ms = None if timing is None else find_next_spread_ms(timing, now_ms, key)
    return replace(after, result=RunOutcome.FAILED, due_ms=due_ms)


def find_next_spread_ms(timing: Timing, after_ms: int, key: bytes) -> int | None:
    """Return the next time of a schedule for one dataset; None: there is none."""
    next_ms = find_next_ms(timing, after_ms)
    return None if next_ms is None else _spread(after_ms, next_ms, key)


def _spread(after_ms: int, next_ms: int, key: bytes) -> int:
    return next_ms + spread_ms(key, after_ms, next_ms, MAX_SPREAD_MS)


LONGEST_REST_MS: Final = 86_400_000
"""That a host may ask for.  # guess: a quota of a day; who is away for longer is asked once a day"""


@dataclass(frozen=True, slots=True)
class Rest:
    """A host is left alone from one time to another (milliseconds since 1970)."""

    since_ms: int
    until_ms: int


@dataclass(slots=True)
class Rests:
    """The rests of all hosts; used by one thread at a time."""

    of_hosts: dict[str, Rest] = field(default_factory=dict)
    pauses_ms: Mapping[str, int] = field(default_factory=dict)
    """The smallest pause between two pulls of a host, where there is one."""

    def renew(self, pauses_ms: Mapping[str, int], now_ms: int) -> None:
        """Take over pauses as they are now, and forget what is over; a clock that was set back lengthens no rest."""
        self.pauses_ms = pauses_ms
        shifted = {
            host: rest if rest.since_ms <= now_ms else Rest(now_ms, now_ms + rest.until_ms - rest.since_ms)
            for host, rest in self.of_hosts.items()
        }
        self.of_hosts = {host: rest for host, rest in shifted.items() if rest.until_ms > now_ms}

    def begin(self, host: str | None, now_ms: int, asked_s: int = 0) -> None:
        """Leave a host alone from now on, for its pause or as long as it asked for (seconds), whichever is longer."""
        if host is None:
            return
        rest_ms = max(self.pauses_ms.get(host, 0), min(asked_s * 1000, LONGEST_REST_MS))
        if rest_ms and self.find_end_ms(host) < now_ms + rest_ms:
            self.of_hosts[host] = Rest(now_ms, now_ms + rest_ms)

    def find_end_ms(self, host: str | None) -> int:
        """Say until when a host is left alone; 0: it is not."""
        rest = None if host is None else self.of_hosts.get(host)
        return 0 if rest is None else rest.until_ms


def find_pause_ms(sources: Iterable[HostSettings], scheme: str, host: str) -> int:
    """Find the pause that the operator states for a host: that of the first section which names it, or its scheme."""
    for source in sources:
        for word in (source.at or "").split():
            if word.lower() == f"{scheme}:" or fits_pattern(word, host):
                return parse_pause_ms(source.pause)
    return 0


def parse_pause_ms(text: str | None) -> int:
    """Return a pause that was checked when it was read, in milliseconds; None: 0."""
    return 0 if text is None else parse_every(text).seconds * 1000
