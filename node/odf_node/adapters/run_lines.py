"""Runs as lines for people: what ran, how long it took and what came of it.

Source: clause OBSERVE-10 in ``spec/observing.md``.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from odf_engines.stage_figures import StageFigures
from odf_node.ports.observing import Run
from odf_node.wording import count_of

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


def _describe_stage(figures: StageFigures) -> str:
    name = f"{figures.stage} {figures.plug_in}".rstrip()
    counts = (("in", figures.rows_in), ("out", figures.rows_out), ("bad", figures.bad_rows))
    rows = ", ".join(f"{count:,} {what}" for what, count in counts if count is not None)
    return f"{name}: {figures.seconds:.3f} s{f'; rows: {rows}' if rows else ''}"
