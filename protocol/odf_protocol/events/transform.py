"""Queries and the event that makes a dataset the result of one.

Source: ODF "SetTransform", "Transform" and the tables below them.
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.events.declaration import Union


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQueryStep:
    """One SELECT; its ``alias`` names the result for later steps, the last step has none."""

    alias: str | None = None
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalTable:
    """A stream to be seen as a table that changes over time."""

    name: str
    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformSql:
    """SQL for an engine.

    Attributes:
        engine: Name, such as ``spark``.
        version: Free text.
        query: Short form of one query; only in manifests, blocks hold ``queries``.
        queries: Steps in order.
        temporal_tables: For engines that join streams with them.
    """

    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[SqlQueryStep, ...] | None = None
    temporal_tables: tuple[TemporalTable, ...] | None = None


Transform = Annotated[TransformSql, Union("Transform")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformInput:
    """An input: ``did:odf:...`` or, before it is resolved, a name; and what the query calls it."""

    dataset_ref: str
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransform:
    """Defines a derivative dataset."""

    inputs: tuple[TransformInput, ...]
    transform: Transform
