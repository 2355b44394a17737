"""How bytes become rows.

``ddl_schema`` is SQL text, ``schema`` ODF types; at most one of them.

Source: ODF "ReadStep" and its members.
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.events.data_schema import DataSchema
from odf_protocol.events.declaration import DefaultsTo, Union

_Ddl = tuple[str, ...] | None
_Encoding = Annotated[str | None, DefaultsTo("utf8")]
_TimeFormat = Annotated[str | None, DefaultsTo("rfc3339")]
_False = Annotated[bool | None, DefaultsTo(False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepCsv:
    """Separated values."""

    ddl_schema: _Ddl = None
    separator: Annotated[str | None, DefaultsTo(",")] = None
    encoding: _Encoding = None
    quote: Annotated[str | None, DefaultsTo('"')] = None
    escape: Annotated[str | None, DefaultsTo("\\")] = None
    header: _False = None
    infer_schema: _False = None
    null_value: Annotated[str | None, DefaultsTo("")] = None
    date_format: _TimeFormat = None
    timestamp_format: _TimeFormat = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepGeoJson:
    """One GeoJSON document; a row per feature."""

    ddl_schema: _Ddl = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepEsriShapefile:
    """A shapefile in a ZIP archive."""

    ddl_schema: _Ddl = None
    sub_path: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepParquet:
    """Apache Parquet."""

    ddl_schema: _Ddl = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepJson:
    """One JSON document; ``sub_path`` leads to the list of rows in it."""

    sub_path: str | None = None
    ddl_schema: _Ddl = None
    date_format: _TimeFormat = None
    encoding: _Encoding = None
    timestamp_format: _TimeFormat = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepNdJson:
    """A JSON object per line."""

    ddl_schema: _Ddl = None
    date_format: _TimeFormat = None
    encoding: _Encoding = None
    timestamp_format: _TimeFormat = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepNdGeoJson:
    """A GeoJSON feature per line."""

    ddl_schema: _Ddl = None
    schema: DataSchema | None = None


ReadStep = Annotated[
    ReadStepCsv
    | ReadStepGeoJson
    | ReadStepEsriShapefile
    | ReadStepParquet
    | ReadStepJson
    | ReadStepNdJson
    | ReadStepNdGeoJson,
    Union("ReadStep"),
]
