"""Stages behind which the first rows of a rehearsed ingest are shown, and how they cross the sandbox.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from enum import StrEnum
from typing import Final

__all__ = ["MOST_SAMPLE_ROWS", "SampledStage", "sample_name"]

MOST_SAMPLE_ROWS: Final = 3  # guess: enough to see how values look, few enough to be read


class SampledStage(StrEnum):
    """Behind which stage rows stand."""

    READ = "read"
    CONVERTED = "converted"
    QUERIED = "queried"


def sample_name(stage: SampledStage) -> str:
    """Name the file of a stage's first rows."""
    return f"sample-{stage.value}.parquet"
