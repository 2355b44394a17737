"""The port through which time enters."""

from typing import Protocol

from odf_protocol.timestamp import Timestamp


class Clock(Protocol):
    """The only source of time for services; one operation asks once and passes the answer on."""

    def now(self) -> Timestamp:
        """Return the current time in UTC; two calls may give equal values, and never a smaller one later."""
        ...
