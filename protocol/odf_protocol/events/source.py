"""Events that define where a root dataset gets its data from, and how new rows meet those that are already there.

Source: ODF "SetPollingSource", "AddPushSource", "DisablePushSource", "DisablePollingSource", "MergeStrategy".
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.events.declaration import Union
from odf_protocol.events.fetch import FetchStep, PrepStep
from odf_protocol.events.read import ReadStep
from odf_protocol.events.transform import Transform


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPollingSource:
    """A source that the node asks: fetch, prepare, read, preprocess, merge."""

    fetch: FetchStep
    prepare: tuple[PrepStep, ...] | None = None
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPushSource:
    """A source that sends to the node: read, preprocess, merge."""

    source_name: str
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class DisablePushSource:
    """Ends a push source."""

    source_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DisablePollingSource:
    """Ends the polling source."""
