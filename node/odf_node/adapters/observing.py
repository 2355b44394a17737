"""Who hears of what runs: lines for people, and observers of plug-ins that settings or the environment ask for.

Source: clauses OBSERVE-1, OBSERVE-3 and OBSERVE-10 in ``spec/observing.md``, PLUG-12 in ``spec/plug-ins.md``.
"""

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from odf_engines.stage_metrics import StageMetrics
from odf_node.plug_ins import contained, load_plug_ins
from odf_node.ports.observing import UNOBSERVED, Observer, Run
from odf_node.wording import count_of

if TYPE_CHECKING:
    from odf_node.configuration.declaration import Configuration

RUNS: Final = logging.getLogger("odf_node.runs")


class RunLines:
    """See ``Observer``."""

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        try:
            yield run
        except BaseException as error:
            RUNS.info("%s: failed after %.2f s (%s)", _name(run), time.monotonic() - run.began_s, type(error).__name__)
            raise
        spent_s = time.monotonic() - run.began_s
        RUNS.info("%s: %s, %.2f s", _name(run), _describe(run), spent_s)
        for each in run.stages:
            RUNS.info("  %s", _describe_stage(each))
        for name, spent in run.milliseconds.items():
            RUNS.info("  %s: %.3f s", name, spent / 1000)

    def flush(self) -> None:
        """See ``Observer``."""

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        return {}


def _name(run: Run) -> str:
    what = f"{run.kind} {run.dataset.name}"
    what += "" if run.block_number is None else f", block {run.block_number}"
    what += f", with {run.peer}" if run.peer else ""
    return what + (f", by {run.engine}" if run.engine else "")


def _describe(run: Run) -> str:
    wrote = f"wrote block {run.written.block}" if run.written and run.written.block else "wrote nothing"
    parts = [wrote, f"{count_of(run.rows, 'row')} added" if run.rows else "", f"{run.bad_rows} set aside"]
    return ", ".join(parts[: 3 if run.bad_rows else 2]).removesuffix(", ")


def _describe_stage(figures: StageMetrics) -> str:
    name = f"{figures.stage} {figures.plug_in}".rstrip()
    counts = (("in", figures.rows_in), ("out", figures.rows_out), ("bad", figures.bad_rows))
    rows = ", ".join(f"{count:,} {what}" for what, count in counts if count is not None)
    return f"{name}: {figures.seconds:.3f} s{f'; rows: {rows}' if rows else ''}"


GROUP: Final = "odf_node.observers"
_LOGGER: Final = logging.getLogger("odf_node.observing")
_LOCK: Final = Lock()
_KNOWN: Final[dict[object, Observer]] = {}  # nodes of one process share threads and connections


@dataclass(frozen=True, slots=True)
class ObserverKind:
    """What a plug-in of the group ``odf_node.observers`` is: an observer that settings or the environment ask for.

    Attributes:
        section: Of the settings, for messages.
        find_target: Says where runs are reported to, and all else by which observers differ; None: nowhere. Given the
            settings and the environment. Loads nothing.
        open: Opens the observer; called where there is a target, with the same.
        extra: That brings what ``open`` imports; None: none.
    """

    section: str
    find_target: Callable[["Configuration", Mapping[str, str]], Hashable | None]
    open: Callable[["Configuration", Mapping[str, str]], Observer]
    extra: str | None = None


class _Several:
    """Lets several observers hear."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        with ExitStack() as stack:
            for each in self._observers:
                stack.enter_context(each.observing(run))
            yield run

    def flush(self) -> None:
        """See ``Observer``."""
        for each in self._observers:
            each.flush()

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        sums: dict[str, dict[str, int]] = {}
        for each in self._observers:
            for what, counts in each.counts.items():
                known = sums.setdefault(what, dict.fromkeys(counts, 0))
                for result, count in counts.items():
                    known[result] += count
        return sums


def get_observer(settings: "Configuration", environment: Mapping[str, str]) -> Observer:
    """Return who hears of what runs in this process under these settings.

    What cannot be told, as an extra is not installed or an address cannot be used, is said in a line and left alone.
    """
    has_lines = RUNS.isEnabledFor(logging.INFO)
    kinds = load_plug_ins(GROUP, ObserverKind)
    targets: dict[str, Hashable] = {}
    for name, kind in kinds.items():
        with contained(GROUP, name):
            if (target := kind.find_target(settings, environment)) is not None:
                targets[name] = target
    served = {kind.section for kind in kinds.values()}
    unserved = tuple(each for each in _list_asked_for(settings) if each not in served)
    if not targets and not unserved and not has_lines:
        return UNOBSERVED
    with _LOCK:
        key = tuple(targets.items()), unserved, has_lines
        if key not in _KNOWN:
            for section in unserved:
                _LOGGER.warning("[%s]: nothing is sent, as this installation has no plug-in for it", section)
            opened = [_open(name, kinds[name], settings, environment) for name in targets]
            lines: list[Observer] = [RunLines()] if has_lines else []
            _KNOWN[key] = _Several([*lines, *(each for each in opened if each is not None)])
        return _KNOWN[key]


def _list_asked_for(settings: "Configuration") -> Iterator[str]:
    """Name the sections that ask for an observer."""
    if settings.telemetry.endpoint is not None:
        yield "telemetry"
    if settings.lineage.url is not None or settings.lineage.file is not None:
        yield "lineage"


def _open(name: str, kind: ObserverKind, settings: "Configuration", environment: Mapping[str, str]) -> Observer | None:
    """Open an observer; what is wrong with it must not stop work (OBSERVE-3)."""
    try:
        return kind.open(settings, environment)
    except ImportError as error:
        package = f"it needs another package: pip install 'odf-node[{kind.extra}]'" if kind.extra else str(error)
        _LOGGER.warning("[%s]: nothing is sent, %s", kind.section, package)
    except Exception as error:  # noqa: BLE001 - of a library or another package, about settings of the environment
        reason = f"its settings cannot be used ({type(error).__name__})"
        _LOGGER.warning("[%s]: '%s' sends nothing, as %s", kind.section, name, reason)
    return None
