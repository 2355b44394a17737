"""Which push source of a dataset a file is for, and in which format it has to be."""

from typing import Final

from odf_engines.column_streams import may_be_columns
from odf_node.errors import UsageError
from odf_node.ingest.ingest_rules import find_rules
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    AddPushSource,
    DatasetKind,
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)

ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
_ANY: Final = "application/octet-stream"
_MEDIA_TYPES: Final[dict[type[ReadStep], tuple[str, ...]]] = {
    ReadStepCsv: ("text/csv",),
    ReadStepJson: ("application/json",),
    ReadStepNdJson: ("application/x-ndjson", "application/ndjson", "application/jsonl"),
    ReadStepGeoJson: ("application/geo+json",),
    ReadStepNdGeoJson: ("application/x-ndgeojson", "application/geo+json-seq"),
    ReadStepParquet: ("application/vnd.apache.parquet", ARROW_STREAM),
}
"""As the reference implementation calls them first, then as others do."""


def list_media_types(view: DatasetView, source: AddPushSource) -> tuple[str, ...]:
    """List how rows for a push source may be called; a reader of the dataset's rules takes bytes of its own format."""
    if find_rules(view.attachments).reader is not None:
        return (_ANY,)
    further = (ARROW_STREAM,) if may_be_columns(source.read) else ()
    return *_MEDIA_TYPES.get(type(source.read), ()), *further, _ANY


def choose_push_source(record: DatasetRecord, view: DatasetView, name: str | None) -> AddPushSource:
    """Choose the push source that a file is for; ``name`` None: the only one, or the one called ``default``.

    Raises:
        UsageError: There is none of this name, or none at all.
    """
    sources = view.push_sources
    if view.kind is not DatasetKind.ROOT:
        raise UsageError(f"'{record.name}' is a derivative: 'odf-node pull {record.name}' runs its query")
    if record.origin is not Origin.OWN:
        raise UsageError(f"'{record.name}' is another node's; only its owner takes rows into it")
    if not sources:
        hint = "it is polled with 'odf-node pull'" if view.polling_source else "add one to its manifest"
        raise UsageError(f"'{record.name}' has no push source; {hint}")
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    chosen = sources.get(name or "default")
    if chosen is None:
        raise UsageError(
            f"'{record.name}' has the push sources {', '.join(sorted(sources))}; choose one with --source-name "
            "(over HTTP: ?sourceName=)"
        )
    return chosen
