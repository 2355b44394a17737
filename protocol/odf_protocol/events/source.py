"""Events that define where a root dataset gets its data from.

Source: ODF "SetPollingSource", "AddPushSource", "DisablePushSource", "DisablePollingSource".
"""

from dataclasses import dataclass

from odf_protocol.events.fetch import FetchStep, PrepStep
from odf_protocol.events.merge import MergeStrategy
from odf_protocol.events.read import ReadStep
from odf_protocol.events.transform import Transform


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
