"""A root dataset for tests: warm sandboxed engines for the whole run, and what a node remembers between ingests."""

import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest, IngestResponse, QueryTable
from odf_engines.engine import EngineSession, IngestSession
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.home_folder import HomeFolder
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeOption,
    MergeStrategy,
    MergeStrategyAppend,
    ReadStep,
    TransformSql,
)
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.warm_engine import process_folder, warm_session

SYSTEM_TIME = "2024-02-01T00:00:00Z"
FALLBACK = "2024-01-31T12:00:00Z"


@cache
def workspace() -> Path:
    folder = process_folder() / "ingests"
    folder.mkdir()
    return folder


def engine_session() -> EngineSession:
    return warm_session()


class WarmHost(EngineHost):
    """Every engine is the warm one of its name."""

    def own_session(self, name: str) -> EngineSession:
        return warm_session(name)

    def _ingest_session(self, request: IngestRequest) -> IngestSession:
        return warm_session(self.get_ingest_engine().name)


@cache
def warm_host() -> WarmHost:
    folder = process_folder() / "ingesting-host"
    return WarmHost(EngineWorkspace(folder), RowsFolder(HomeFolder(folder)))


def schema(**types: DataType) -> DataSchema:
    """Optional columns; wrap nothing to make them required: pass ``required(...)``."""
    fields = []
    for name, kind in types.items():
        is_required = isinstance(kind, Required)
        fields.append(DataField(name=name, type=kind.type if is_required else DataTypeOption(inner=kind)))
    return DataSchema(fields=tuple(fields))


@dataclass(frozen=True)
class Required:
    type: DataType


@dataclass
class RootDataset:
    read: ReadStep
    merge: MergeStrategy = field(default_factory=MergeStrategyAppend)
    preprocess: TransformSql | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    known: DataSchema | None = None
    state: Path | None = None
    next_offset: int = 0
    watermark: Timestamp | None = None
    slices: list[Path] = field(default_factory=list)
    session: IngestSession | EngineHost | None = None

    def ingest(self, source: str | bytes | Path, *, system_time: str = SYSTEM_TIME, **changes: Any) -> IngestResponse:
        if not isinstance(source, Path):
            path = Path(tempfile.mkstemp(dir=workspace())[1])
            path.write_bytes(source.encode() if isinstance(source, str) else source)
            source = path
        request = {
            "dataset_id": "did:odf:test",
            "read": self.read,
            "preprocess": self.preprocess,
            "merge": self.merge,
            "vocabulary": self.vocabulary,
            "source_path": source,
            "source_name": "the source",
            "known_schema": self.known,
            "state_path": self.state,
            "system_time": Timestamp.parse(system_time),
            "fallback_event_time": Timestamp.parse(FALLBACK),
            "next_offset": self.next_offset,
            "prev_watermark": self.watermark,
        }
        response = (self.session or warm_host()).ingest(IngestRequest(**{**request, **changes}))
        self.known = data_schema_of(response.schema)
        self.state, self.watermark = response.state_path, response.watermark
        if response.offset_interval is not None and response.data_path is not None:
            self.next_offset = response.offset_interval.end + 1
            self.slices.append(response.data_path)
        return response

    def table(self, name: str) -> QueryTable:
        assert self.known is not None
        return QueryTable(name=name, vocabulary=self.vocabulary, schema=self.known, slices=tuple(self.slices))


def rows_of(path: Path | None) -> list[dict[str, Any]]:
    return [] if path is None else pq.read_table(path).to_pylist()


def quarantined(response: IngestResponse) -> list[dict[str, Any]]:
    return rows_of(response.quarantine_path)
