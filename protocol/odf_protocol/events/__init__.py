"""Every event that a metadata block can hold, as frozen dataclasses.

Their annotations are the wire format, see ``declaration``; fields carry ODF's names in snake_case, lists are tuples,
None means absent.

Source: ODF "Metadata events"; tags of the union MetadataEvent.
"""

from typing import Annotated

from odf_protocol.events.data import (
    AddData,
    Checkpoint,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    SourceState,
)
from odf_protocol.events.data_schema import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeDuration,
    DataTypeFloat16,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt8,
    DataTypeInt16,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeMap,
    DataTypeNull,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt8,
    DataTypeUInt16,
    DataTypeUInt32,
    DataTypeUInt64,
    TimeUnit,
)
from odf_protocol.events.declaration import Union
from odf_protocol.events.extra_attributes import (
    ExtraAttributes,
)
from odf_protocol.events.fetch import (
    CompressionFormat,
    EnvVar,
    EventTimeSource,
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    MqttQos,
    MqttTopicSubscription,
    PrepStep,
    PrepStepDecompress,
    PrepStepPipe,
    RequestHeader,
    SourceCaching,
    SourceCachingForever,
    SourceOrdering,
)
from odf_protocol.events.merge import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odf_protocol.events.metadata import (
    AttachmentEmbedded,
    Attachments,
    AttachmentsEmbedded,
    DatasetKind,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetVocab,
)
from odf_protocol.events.read import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odf_protocol.events.source import (
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    SetPollingSource,
)
from odf_protocol.events.transform import (
    SetTransform,
    SqlQueryStep,
    TemporalTable,
    Transform,
    TransformInput,
    TransformSql,
)

__all__ = [
    "AddData",
    "AddPushSource",
    "AttachmentEmbedded",
    "Attachments",
    "AttachmentsEmbedded",
    "Checkpoint",
    "CompressionFormat",
    "DataField",
    "DataSchema",
    "DataSlice",
    "DataType",
    "DataTypeBinary",
    "DataTypeBool",
    "DataTypeDate",
    "DataTypeDecimal",
    "DataTypeDuration",
    "DataTypeFloat16",
    "DataTypeFloat32",
    "DataTypeFloat64",
    "DataTypeInt8",
    "DataTypeInt16",
    "DataTypeInt32",
    "DataTypeInt64",
    "DataTypeList",
    "DataTypeMap",
    "DataTypeNull",
    "DataTypeOption",
    "DataTypeString",
    "DataTypeStruct",
    "DataTypeTime",
    "DataTypeTimestamp",
    "DataTypeUInt8",
    "DataTypeUInt16",
    "DataTypeUInt32",
    "DataTypeUInt64",
    "DatasetKind",
    "DisablePollingSource",
    "DisablePushSource",
    "EnvVar",
    "Event",
    "EventTimeSource",
    "EventTimeSourceFromMetadata",
    "EventTimeSourceFromPath",
    "EventTimeSourceFromSystemTime",
    "ExecuteTransform",
    "ExecuteTransformInput",
    "ExtraAttributes",
    "FetchStep",
    "FetchStepContainer",
    "FetchStepEthereumLogs",
    "FetchStepFilesGlob",
    "FetchStepMqtt",
    "FetchStepUrl",
    "MergeStrategy",
    "MergeStrategyAppend",
    "MergeStrategyChangelogStream",
    "MergeStrategyLedger",
    "MergeStrategySnapshot",
    "MergeStrategyUpsertStream",
    "MqttQos",
    "MqttTopicSubscription",
    "OffsetInterval",
    "PrepStep",
    "PrepStepDecompress",
    "PrepStepPipe",
    "ReadStep",
    "ReadStepCsv",
    "ReadStepEsriShapefile",
    "ReadStepGeoJson",
    "ReadStepJson",
    "ReadStepNdGeoJson",
    "ReadStepNdJson",
    "ReadStepParquet",
    "RequestHeader",
    "Seed",
    "SetAttachments",
    "SetDataSchema",
    "SetInfo",
    "SetLicense",
    "SetPollingSource",
    "SetTransform",
    "SetVocab",
    "SourceCaching",
    "SourceCachingForever",
    "SourceOrdering",
    "SourceState",
    "SqlQueryStep",
    "TemporalTable",
    "TimeUnit",
    "Transform",
    "TransformInput",
    "TransformSql",
]

Event = Annotated[
    AddData
    | ExecuteTransform
    | Seed
    | SetPollingSource
    | SetTransform
    | SetVocab
    | SetAttachments
    | SetInfo
    | SetLicense
    | SetDataSchema
    | AddPushSource
    | DisablePushSource
    | DisablePollingSource,
    Union("MetadataEvent", prefix=""),
]
