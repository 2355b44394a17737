"""How far a long step is: a line that moves on a terminal, a plain line now and then elsewhere.

Nothing is said that is not known: the rate is that of the last seconds, without what was here already when they began;
a transfer that stands still shows it; time left is said only while something comes. A step without a size says how long
it takes so far.
"""

import math
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from odf_node.cli.widths import cut_to, width_of
from odf_node.ports.progress import Count

BAR_WIDTH: Final = 24  # guess: leaves room for the numbers on an 80-column terminal
REDRAW_S: Final = 0.1
TICK_S: Final = 1.0
"""How often a terminal is drawn although nothing came: seconds go on, rates fall."""
PLAIN_VARIABLE: Final = "ODF_NODE_PROGRESS_S"
"""How often a log hears of a long step; 0: never."""
PLAIN_EACH_S: Final = 60.0  # guess: a line a minute is read, more is noise; short steps say nothing
WINDOW_S: Final = 10.0
"""What rates are measured over.  # guess: steady, and over soon after a stall"""
_MIN_WINDOW_S: Final = 1.0
_MIN_LABEL: Final = 16  # guess: the beginning of a name
_STATED_FROM_S: Final = 2.0
"""Steps shorter than this show no time."""

_BYTES: Final = "B"
_MAX_METERS: Final = 256  # guess: counted steps that take turns on one line, as datasets verified at once do

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


class Meter:
    """What has been done, how fast, and how long the rest takes. Pure: the time is passed in.

    Bytes come all the time, so their rate is that of the last seconds. What else is counted of a total comes in lumps,
    as rows do with their slice and steps of minutes each, so its rate is that since the first of it was counted.
    """

    def __init__(self, *, total: int | None, now_s: float, unit: str = _BYTES) -> None:
        self.total = total
        self.done = 0
        self.unit = unit
        self.began_s = now_s
        self._samples: deque[tuple[float, int]] = deque()

    def advance(self, size: int, now_s: float) -> None:
        """Add what was done; the first is no rate yet, as it may have been here before."""
        self.done += size
        if self._is_steady or not self._samples:
            self._samples.append((now_s, self.done))
        self._forget(now_s)

    def find_rate(self, now_s: float) -> float | None:
        """Return how much is done a second; None: too early to tell."""
        self._forget(now_s)
        if not self._samples:
            return None
        since_s, before = self._samples[0]
        passed_s = now_s - since_s
        if passed_s < _MIN_WINDOW_S or (self.unit != _BYTES and self.done == before):
            return None  # of steps that take minutes, none done yet is no standstill
        return max(0.0, (self.done - before) / passed_s)

    def find_left_s(self, now_s: float) -> float | None:
        """Return how long the rest takes at this rate; None: not known, or nothing comes."""
        rate = self.find_rate(now_s)
        if not rate or not self.total:
            return None
        return max(0, self.total - self.done) / rate

    @property
    def _is_steady(self) -> bool:
        return self.unit == _BYTES or self.total is None

    def _forget(self, now_s: float) -> None:
        # One sample from before the window stays: what came since then is what came in it.
        while len(self._samples) > 1 and self._samples[1][0] <= now_s - WINDOW_S:
            self._samples.popleft()


class Progress:
    """One long step, shown while it runs; every method may be called from any thread."""

    def __init__(
        self,
        stream: TextIO,
        label: str,
        *,
        total_bytes: int | None,
        moves: bool,
        is_quiet: bool,
        plain_each_s: float,
        clean: Callable[[str], str],
    ) -> None:
        """Begin to show it.

        Args:
            stream: Where; a terminal where it ``moves``.
            label: What is going on.
            total_bytes: How much there will be, None: not known yet.
            moves: Whether the line is drawn over itself.
            is_quiet: Whether nothing is shown at all.
            plain_each_s: How often a line is written where it does not move; 0: never.
            clean: Makes one harmless line of text that may come from strangers.
        """
        self._stream = stream
        self._label = label
        self._moves = moves
        self._each_s = TICK_S if moves else plain_each_s
        self._clean = clean
        self._meter = Meter(total=total_bytes, now_s=time.monotonic())
        self._counted: dict[tuple[str, str], Meter] = {}
        self._drawn_s = 0.0
        self._width = 0
        self._writing = threading.Lock()
        self._ended = threading.Event()
        if not is_quiet and self._each_s:
            if moves:
                self._draw()
            threading.Thread(target=self._tick, name="progress", daemon=True).start()
        self._is_shown = moves and not is_quiet

    def advance(self, size_bytes: int) -> None:
        """Add bytes that have been handled."""
        now_s = time.monotonic()
        with self._writing:
            self._meter.advance(size_bytes, now_s)
        if self._is_shown and now_s - self._drawn_s >= REDRAW_S:
            self._draw()

    def on_progress(self, label: str, count: Count | None = None, /) -> None:
        """Say what is going on now; bytes and seconds are counted anew where it is something else."""
        now_s = time.monotonic()
        with self._writing:
            goes_on = count is not None and label == self._label
            self._label = label
            self._meter = Meter(total=None, now_s=now_s) if count is None else self._reach(label, count, now_s)
        if self._is_shown and (not goes_on or now_s - self._drawn_s >= REDRAW_S):
            self._draw()

    def _reach(self, label: str, count: Count, now_s: float) -> Meter:
        """Take up the meter of what is counted under a label, also where other things were said meanwhile."""
        meter = self._counted.get((label, count.unit))
        if meter is None or count.done < meter.done:
            if len(self._counted) >= _MAX_METERS:
                self._counted.clear()
            meter = self._counted[label, count.unit] = Meter(total=count.total, now_s=now_s, unit=count.unit)
        meter.total = count.total
        meter.advance(count.done - meter.done, now_s)
        return meter

    def expect(self, total_bytes: int) -> None:
        """Set how many bytes there will be, once that is known."""
        self._meter.total = total_bytes

    def close(self) -> None:
        """Wipe the line; nothing is written afterwards."""
        self._ended.set()
        with self._writing:
            if self._is_shown and self._width:
                print("\r" + " " * self._width + "\r", end="", file=self._stream, flush=True)
                self._width = 0

    def _tick(self) -> None:
        while not self._ended.wait(self._each_s):
            try:
                self._draw()
            except (OSError, ValueError):
                return  # nobody listens any more, which the command itself finds out where it matters

    def _draw(self) -> None:
        with self._writing:
            if self._ended.is_set():
                return
            self._drawn_s = time.monotonic()
            if self._moves:
                width = shutil.get_terminal_size().columns - 1
                whole = describe(self._clean(self._label), self._meter, self._drawn_s, bar=True, width=width)
                line = cut_to(whole, width)
                shown_width = width_of(line)
                left = " " * max(0, self._width - shown_width)
                print(f"\r{line}{left}", end="", file=self._stream, flush=True)
                self._width = shown_width
            else:
                line = self._clean(describe(self._label, self._meter, self._drawn_s, bar=False))
                print(line, file=self._stream, flush=True)


def plain_seconds(environment: Mapping[str, str]) -> float:
    """Return how often a log hears of a long step, as the environment says if it says so; 0: never."""
    try:
        each_s = float(environment.get(PLAIN_VARIABLE, PLAIN_EACH_S))
    except ValueError:
        return PLAIN_EACH_S
    return min(max(0.0, each_s), threading.TIMEOUT_MAX) if math.isfinite(each_s) else PLAIN_EACH_S


def describe(label: str, meter: Meter, now_s: float, *, bar: bool, width: int | None = None) -> str:
    """Say on one line what is going on and how far it is; of a line that is too wide, the label is cut."""
    figures = _describe_figures(meter, now_s, bar=bar)
    if width is not None:
        label = cut_to(label, max(_MIN_LABEL, width - len(figures)))
    return f"{label}{figures}"


def _describe_figures(meter: Meter, now_s: float, *, bar: bool) -> str:
    rate, left_s = meter.find_rate(now_s), meter.find_left_s(now_s)
    done, unit = max(0, meter.done), meter.unit
    speed = "" if rate is None else f", {_format_amount(rate, unit)}/s"
    passed_s = now_s - meter.began_s
    so_far = f"{format_seconds(passed_s)} so far" if passed_s >= _STATED_FROM_S else ""
    if meter.total:
        full = int(min(1.0, done / meter.total) * BAR_WIDTH)
        drawn = f" [{'#' * full}{'.' * (BAR_WIDTH - full)}]" if bar else ":"
        shown = _format_amount(done, unit) if unit == _BYTES else f"{done:,}"
        # Where nothing of it is done yet, the time so far is all that is known.
        left = "" if left_s is None else f"{format_seconds(left_s)} left"
        left = left or (so_far if unit != _BYTES else "")
        return f"{drawn} {shown} of {_format_amount(meter.total, unit)}{speed}{left and f', {left}'}"
    parts = [f"{_format_amount(done, unit)}{speed}" if done else "", so_far]
    return "".join(f", {each}" for each in parts if each)


def _format_amount(amount: float, unit: str) -> str:
    """Write how much of something; fractions only of rates that are small."""
    if unit == _BYTES:
        return format_bytes(int(amount))
    return f"{amount:,.0f} {unit}" if amount == int(amount) or amount >= 10 else f"{amount:.2g} {unit}"


def format_bytes(size_bytes: int) -> str:
    """Write a size with three digits and a decimal unit."""
    size = float(size_bytes)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError(size_bytes)


def format_seconds(seconds: float) -> str:
    """Write a time as people say it: ``95 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
