"""The port through which time enters."""

from typing import Protocol

from odf_protocol.timestamp import Timestamp


class Clock(Protocol):
    """The only source of time for use cases; one operation asks once and passes the answer on."""

    def now(self) -> Timestamp:
        """Return the current time in UTC. Clocks are set: a later call may give an earlier time."""
        ...

    def not_before(self, earliest: Timestamp) -> Timestamp:
        """Return the time to write with behind something of ``earliest``: no earlier one, unless a user named it."""
        ...
