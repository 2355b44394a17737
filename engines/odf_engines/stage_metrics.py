"""What the stages of an ingest and their plug-ins did: how long each took, and with how many rows.

A stage stands in a line of its own, with the empty plug-in, and each plug-in of it in another: a plug-in's time is part
of its stage's. Times are measured where the work is done, which is code of others: they are for the operator, and
nothing follows from them. Of a rehearsed ingest the first rows behind stages are shown besides.

Source: clauses STAGE-1 to STAGE-3 in ``spec/observing.md``; ING-25 in ``spec/ingest.md``.
"""

import math
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

MAX_STAGE_LINES: Final = 1000
"""Stages and plug-ins that one answer may tell of.  # guess: more than a manifest declares"""


class IngestStage(StrEnum):
    """What an ingest is made of, in order."""

    FETCH = "fetch"
    PREPARE = "prepare"
    ENGINE = "engine"  # its start, files to it and from it, and the check of what it gave
    READ = "read"
    CONVERT = "convert"
    PREPROCESS = "preprocess"
    VALIDATE = "validate"
    MERGE = "merge"
    QUARANTINE = "quarantine"
    PERSIST = "persist"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMetrics:
    """What one stage, or one plug-in of it, did.

    Attributes:
        stage: An ``IngestStage``.
        plug_in: What manifests call it: a converter, a validator, a format, a merge strategy; empty: the whole stage.
        position: Of the plug-in among those of the stage.
        seconds: It worked so long, all subsets together.
        rows_in: Rows or records that it was given; None: nobody counted.
        rows_out: Of those, or made of them, that it passed on.
        bad_rows: That it found fault with.
        began_s: When it began,
        ended_s: and ended, by the machine's monotonic clock.
    """

    stage: str
    plug_in: str = ""
    position: int = 0
    seconds: float = 0.0
    rows_in: int | None = None
    rows_out: int | None = None
    bad_rows: int | None = None
    began_s: float = 0.0
    ended_s: float = 0.0

    def within(self, began_s: float, ended_s: float) -> "StageMetrics":
        """Give it as it can have been, of a guest that worked at no other time."""
        first = min(max(self.began_s, began_s), ended_s)
        last = min(max(self.ended_s, first), ended_s)
        return replace(self, seconds=min(self.seconds, last - first), began_s=first, ended_s=last)

    def plus(self, later: "StageMetrics") -> "StageMetrics":
        """Add what the same did in a later batch."""
        return replace(
            self,
            seconds=self.seconds + later.seconds,
            rows_in=_sum(self.rows_in, later.rows_in),
            rows_out=_sum(self.rows_out, later.rows_out),
            bad_rows=_sum(self.bad_rows, later.bad_rows),
            ended_s=later.ended_s,
        )


@dataclass(slots=True)
class StageSums:
    """What a stage or plug-in did so far."""

    seconds: float = 0.0
    rows_in: int | None = None
    rows_out: int | None = None
    bad_rows: int | None = None
    began_s: float = math.inf
    ended_s: float = 0.0

    def count(self, *, rows_in: int | None = None, rows_out: int | None = None, bad_rows: int | None = None) -> None:
        """Add rows; None: nothing is known of them."""
        self.rows_in = _sum(self.rows_in, rows_in)
        self.rows_out = _sum(self.rows_out, rows_out)
        self.bad_rows = _sum(self.bad_rows, bad_rows)


class StageClock:
    """Measures stages and plug-ins; what is done in subsets is added up."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, int], StageSums] = {}

    @contextmanager
    def measuring(self, stage: IngestStage, plug_in: str = "", position: int = 0) -> Iterator[StageSums]:
        """Add the time inside to what a stage, or a plug-in of it, took."""
        sums = self._sums.setdefault((stage.value, plug_in, position), StageSums())
        began_s = time.monotonic()
        sums.began_s = min(sums.began_s, began_s)
        try:
            yield sums
        finally:
            sums.ended_s = time.monotonic()
            sums.seconds += sums.ended_s - began_s

    @contextmanager
    def measuring_alone(self, stage: IngestStage, plug_in: str) -> Iterator[StageSums]:
        """Measure a stage that one plug-in does alone; rows are counted inside."""
        with self.measuring(stage) as whole, self.measuring(stage, plug_in) as sums:
            yield sums
            whole.count(rows_in=sums.rows_in, rows_out=sums.rows_out, bad_rows=sums.bad_rows)

    @property
    def figures(self) -> tuple[StageMetrics, ...]:
        """What was measured, in the order in which it began."""
        return tuple(
            StageMetrics(stage=stage, plug_in=plug_in, position=position, **asdict(sums))
            for (stage, plug_in, position), sums in self._sums.items()
        )

    def to_answer(self) -> list[dict[str, Any]]:
        """Give it as plain values, for the host."""
        return [asdict(each) for each in self.figures]


def merge_stages(stages: Iterable[StageMetrics], *, by_position: bool = True) -> tuple[StageMetrics, ...]:
    """Make one line of those about the same stage and plug-in; ``by_position``: of one place in the manifest."""
    merged: dict[tuple[str, str, int], StageMetrics] = {}
    for each in stages:
        key = each.stage, each.plug_in, each.position if by_position else 0
        merged[key] = merged[key].plus(each) if key in merged else each
    return tuple(merged.values())


def read_stage_metrics(found: object, known: Collection[tuple[str, str]]) -> tuple[StageMetrics, ...]:
    """Read what a guest says of its stages; none of it decides anything.

    Args:
        found: As unchecked as any answer.
        known: The stages and plug-ins that it may tell of.

    Raises:
        ValueError: It is no such list.
    """
    if not isinstance(found, list) or len(found) > MAX_STAGE_LINES:
        raise ValueError(f"expected at most {MAX_STAGE_LINES} stages")
    return tuple(_read_line(each, known) for each in found)


def _read_line(found: Any, known: Collection[tuple[str, str]]) -> StageMetrics:
    match found:
        case {
            "stage": str(stage),
            "plug_in": str(plug_in),
            "position": int(position),
            "seconds": int() | float() as seconds,
            "began_s": int() | float() as began,
            "ended_s": int() | float() as ended,
        } if (stage, plug_in) in known and 0 <= position < MAX_STAGE_LINES:
            if not all(math.isfinite(each) and each >= 0 for each in (seconds, began, ended)):
                raise ValueError("expected times")
            return StageMetrics(
                stage=stage,
                plug_in=plug_in,
                position=position,
                seconds=seconds,
                rows_in=_read_count(found, "rows_in"),
                rows_out=_read_count(found, "rows_out"),
                bad_rows=_read_count(found, "bad_rows"),
                began_s=began,
                ended_s=ended,
            )
    raise ValueError("expected stages and plug-ins of the request, with times")


def _read_count(found: Any, name: str) -> int | None:
    match found.get(name):
        case None:
            return None
        case int(count) if not isinstance(count, bool) and 0 <= count < 2**63:
            return count
    raise ValueError(f"{name}: expected a count")


def _sum(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else first + second


MAX_SAMPLE_ROWS: Final = 3  # guess: enough to see how values look, few enough to be read


class SampledStage(StrEnum):
    """Behind which stage rows stand."""

    READ = "read"
    CONVERTED = "converted"
    QUERIED = "queried"


def sample_name(stage: SampledStage) -> str:
    """Name the file of a stage's first rows."""
    return f"sample-{stage.value}.parquet"
