"""A clock that moves only when somebody waits: rates are watched in its time, whatever the machine does meanwhile."""

import asyncio
import threading

import pytest

from odf_node.byte_rate import ByteRate


def put_loop_ahead(monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    """Let so much time have passed for the loop that runs: what is due until then happens, however busy the machine."""
    loop = asyncio.get_running_loop()
    now_s = loop.time
    monkeypatch.setattr(loop, "time", lambda: now_s() + by_s)


class TurnedClock:
    """Time that passes by being waited for."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def rate(self, bytes_per_s: int) -> ByteRate:
        """Make a rate by this clock."""
        return ByteRate(bytes_per_s, now_s=lambda: self.passed_s, sleep=self._sleep, hold=self._hold)

    async def _sleep(self, wait_s: float) -> None:
        self._turn(wait_s)
        await asyncio.sleep(0)

    def _hold(self, stopped: threading.Event, wait_s: float) -> bool:
        self._turn(wait_s)
        return stopped.is_set()

    def _turn(self, wait_s: float) -> None:
        with self._lock:
            self.waits.append(wait_s)
            # As on every clock, a little later than asked for: fractions that rounding eats would never pass.
            self.passed_s += wait_s + 1e-6
