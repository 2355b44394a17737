"""Clocks: the machine's, and one that stands still for runs that must repeat (DAEMON-14)."""

import time
from dataclasses import dataclass

from odf_protocol.timestamp import NANOSECONDS_PER_SECOND, Timestamp


class SystemClock:
    """The machine's clock, as it is: one that was wrong and is set right must not stay wrong here for months."""

    def now(self) -> Timestamp:
        return Timestamp(*divmod(time.time_ns(), NANOSECONDS_PER_SECOND))

    def not_before(self, earliest: Timestamp) -> Timestamp:
        return max(self.now(), earliest)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that always shows ``time``."""

    time: Timestamp

    def now(self) -> Timestamp:
        return self.time

    def not_before(self, earliest: Timestamp) -> Timestamp:  # noqa: ARG002 - the port's signature
        """See ``Clock``: a time that the user named is not changed; what does not fit is rejected (CHAIN-8)."""
        return self.time
