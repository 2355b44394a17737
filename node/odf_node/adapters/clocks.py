"""Clocks: the machine's, and one that stands still for runs that must repeat."""

import time
from dataclasses import dataclass

from odf_protocol.timestamp import NANOSECONDS_PER_SECOND, Timestamp


class SystemClock:
    """The machine's clock, which never seems to run back within one process."""

    def __init__(self) -> None:
        self._newest = Timestamp(0)

    def now(self) -> Timestamp:
        """See ``Clock``."""
        self._newest = max(self._newest, Timestamp(*divmod(time.time_ns(), NANOSECONDS_PER_SECOND)))
        return self._newest


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that always shows ``time``."""

    time: Timestamp

    def now(self) -> Timestamp:
        """See ``Clock``."""
        return self.time
