"""Until when hosts are left alone: between two pulls, and for as long as one asked for. Pure; the time is passed in.

Source: clause SCHED-12 in ``spec/schedules.md``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from odf_node.configuration.declaration import Source
from odf_node.schedule_times import parse_every
from odf_protocol.names import fits_pattern

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


def find_pause_ms(sources: Iterable[Source], scheme: str, host: str) -> int:
    """Find the pause that the operator states for a host: that of the first section which names it, or its scheme."""
    for source in sources:
        for word in (source.at or "").split():
            if word.lower() == f"{scheme}:" or fits_pattern(word, host):
                return parse_pause_ms(source.pause)
    return 0


def parse_pause_ms(text: str | None) -> int:
    """Return a pause that was checked when it was read, in milliseconds; None: 0."""
    return 0 if text is None else parse_every(text).seconds * 1000
