"""What most likely lies behind a divergence: where a person should look first, never a reason to accept.

=================  ===============================================================================================
cause              found when
=================  ===============================================================================================
missing-input      what the step read is not what is held here, so nothing was compared
order              the same rows stand in another order
float              only floating-point cells differ, each by no more than another order of adding up gives
late-data          whole rows differ, all older than the watermark that stood before the step
engine-version     none of these, and the step's replay record names another engine
tampering          none of these, and the engine is the same, or nobody signed which it was
=================  ===============================================================================================

Source: clause REPLAY-10 in ``spec/extensions/replay.md``.
"""

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Why a step may not have been reproduced; see the module's table."""

    MISSING_INPUT = "missing-input"
    ORDER = "order"
    FLOAT = "float"
    LATE_DATA = "late-data"
    ENGINE_VERSION = "engine-version"
    TAMPERING = "tampering"


CAUSE_TEXTS: Final = {
    Cause.MISSING_INPUT: "what the step read is not what this node holds",
    Cause.ORDER: "no value differs: the writer's engine kept another order",
    Cause.FLOAT: "only last digits of floating-point numbers differ, as from adding up in another order",
    Cause.LATE_DATA: "only rows older than the watermark differ: the two sides disagree about what came too late",
    Cause.ENGINE_VERSION: "it was made by another build of the engine",
    Cause.TAMPERING: "neither order, rounding, late rows nor another engine explains it: data or query were changed",
}
