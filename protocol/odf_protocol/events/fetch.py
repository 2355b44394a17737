"""Where a polling source gets bytes from, and how they are unpacked.

Source: ODF "FetchStep", "PrepStep" and the tables below them.
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.enums import CompressionFormat, MqttQos, SourceOrdering
from odf_protocol.events.declaration import I32, U64, DefaultsTo, Union


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeSourceFromMetadata:
    """Time that the source states, such as Last-Modified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeSourceFromPath:
    """Time in the file's name: first group of regular expression ``pattern``, in ``timestamp_format``."""

    pattern: str
    timestamp_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeSourceFromSystemTime:
    """Time of ingestion."""


EventTimeSource = Annotated[
    EventTimeSourceFromMetadata | EventTimeSourceFromPath | EventTimeSourceFromSystemTime,
    Union("EventTimeSource"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCachingForever:
    """Once read, never look again."""


SourceCaching = Annotated[SourceCachingForever, Union("SourceCaching")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """A header of an HTTP request."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepUrl:
    """One document behind a URL."""

    url: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    headers: tuple[RequestHeader, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepFilesGlob:
    """Local files that match a pattern."""

    path: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    order: SourceOrdering | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVar:
    """A variable for a container; without ``value`` it is passed on from the caller."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepContainer:
    """Output of a container image."""

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTopicSubscription:
    """A topic to listen to."""

    path: str
    qos: Annotated[MqttQos | None, DefaultsTo(MqttQos.AT_MOST_ONCE)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepMqtt:
    """Messages of an MQTT broker."""

    host: str
    port: I32
    username: str | None = None
    password: str | None = None
    topics: tuple[MqttTopicSubscription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepEthereumLogs:
    """Logs of an Ethereum node that match a filter."""

    chain_id: U64 | None = None
    node_url: str | None = None
    filter: str | None = None
    signature: str | None = None


FetchStep = Annotated[
    FetchStepUrl | FetchStepFilesGlob | FetchStepContainer | FetchStepMqtt | FetchStepEthereumLogs,
    Union("FetchStep"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepStepDecompress:
    """Unpack; ``sub_path`` is the entry of an archive with several."""

    format: CompressionFormat
    sub_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepStepPipe:
    """Run a program over the bytes."""

    command: tuple[str, ...]


PrepStep = Annotated[PrepStepDecompress | PrepStepPipe, Union("PrepStep")]
