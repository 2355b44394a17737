"""Events that say what a dataset is.

Source: ODF "Seed", "SetVocab", "SetInfo", "SetLicense", "SetAttachments", "SetDataSchema".
"""

from dataclasses import dataclass
from typing import Annotated

from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.events.data_schema import DataSchema
from odf_protocol.events.declaration import DefaultsTo, Union


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """The first block of every chain, and nowhere else."""

    dataset_id: DatasetId
    dataset_kind: DatasetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVocab:
    """Renames the system columns."""

    offset_column: Annotated[str | None, DefaultsTo("offset")] = None
    operation_type_column: Annotated[str | None, DefaultsTo("op")] = None
    system_time_column: Annotated[str | None, DefaultsTo("system_time")] = None
    event_time_column: Annotated[str | None, DefaultsTo("event_time")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentEmbedded:
    """A text file carried in the block."""

    path: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentsEmbedded:
    """Text files carried in the block."""

    items: tuple[AttachmentEmbedded, ...]


Attachments = Annotated[AttachmentsEmbedded, Union("Attachments")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAttachments:
    """Readme and the like."""

    attachments: Attachments


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInfo:
    """Description for people."""

    description: str | None = None
    keywords: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLicense:
    """Terms of use."""

    short_name: str
    name: str
    spdx_id: str | None = None
    website_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDataSchema:
    """Columns of the data.

    Attributes:
        raw_arrow_schema: Old form, an Arrow IPC schema message; read, never written.
        schema: The form in use.
    """

    raw_arrow_schema: bytes | None = None
    schema: DataSchema | None = None
