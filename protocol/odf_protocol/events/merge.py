"""How new rows meet the rows that are already there.

Source: ODF "MergeStrategy" and its members.
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.events.declaration import Union


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyAppend:
    """Take every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyLedger:
    """Take rows whose key was never seen."""

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategySnapshot:
    """The source states everything each time; differences become additions, retractions and corrections."""

    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyChangelogStream:
    """The source is a changelog already."""

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyUpsertStream:
    """Each row states the newest value of its key."""

    primary_key: tuple[str, ...]


MergeStrategy = Annotated[
    MergeStrategyAppend
    | MergeStrategyLedger
    | MergeStrategySnapshot
    | MergeStrategyChangelogStream
    | MergeStrategyUpsertStream,
    Union("MergeStrategy"),
]
