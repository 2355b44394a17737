"""Which push source of a dataset a file is for."""

from odf_node.errors import UsageError
from odf_node.ports import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import AddPushSource, DatasetKind

__all__ = ["choose_push_source"]


def choose_push_source(record: DatasetRecord, view: DatasetView, name: str | None) -> AddPushSource:
    """Choose the push source that a file is for; ``name`` None: the only one, or the one called ``default``.

    Raises:
        UsageError: There is none of this name, or none at all.
    """
    sources = view.push_sources
    if view.kind is not DatasetKind.ROOT:
        raise UsageError(f"'{record.name}' is a derivative: 'odf-node pull {record.name}' runs its query")
    if not sources:
        hint = "it is polled with 'odf-node pull'" if view.polling_source else "add one to its manifest"
        raise UsageError(f"'{record.name}' has no push source; {hint}")
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    chosen = sources.get(name or "default")
    if chosen is None:
        raise UsageError(
            f"'{record.name}' has the push sources {', '.join(sorted(sources))}; choose one with --source-name"
        )
    return chosen
