"""Manifests that were written for other engines, with their queries translated (PLAN-17)."""

from dataclasses import dataclass, replace
from typing import Any

from odf_engines.translation import Translation, find_translation
from odf_node.configuration.declaration import SLOW_ENGINE
from odf_protocol.events import AddPushSource, Event, SetPollingSource, SetTransform, TransformSql
from odf_protocol.manifest import DatasetSnapshot


@dataclass(frozen=True, slots=True)
class TranslatedDataset:
    """A dataset whose query was translated."""

    dataset: str
    translation: Translation

    def describe(self) -> list[str]:
        """Say it in lines for people."""
        found = self.translation
        lines = [f"{self.dataset}: translated from {found.engine}", *(f"  {line}" for line in found.difference)]
        return lines + [f"  look at {doubt}" for doubt in found.doubts]

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        found = self.translation
        return {"from": found.engine, "difference": list(found.difference), "doubts": list(found.doubts)}


def translate_snapshot(snapshot: DatasetSnapshot) -> tuple[DatasetSnapshot, TranslatedDataset | None]:
    """Translate the queries of a manifest that name another engine; None: none does.

    Raises:
        MalformedError: The SQL of the engine is not known, or a query cannot be read in it, or has a part that Spark
            has nothing for.
    """
    found = None
    events = []
    for event in snapshot.metadata:
        query = _query_of(event)
        is_preprocess = not isinstance(event, SetTransform)
        where = f"'{snapshot.name}'"
        if query is not None and query.engine.lower() != SLOW_ENGINE:
            translate = find_translation(query.engine, where=where)
            translation = translate(query, where=where, is_preprocess=is_preprocess)
            found = TranslatedDataset(str(snapshot.name), translation)
            event = replace(event, **{"preprocess" if is_preprocess else "transform": translation.transform})  # type: ignore[arg-type]  # as named
        events.append(event)
    return (snapshot if found is None else replace(snapshot, metadata=tuple(events))), found


def _query_of(event: Event) -> TransformSql | None:
    match event:
        case SetTransform(transform=transform):
            return transform
        case SetPollingSource(preprocess=preprocess) | AddPushSource(preprocess=preprocess):
            return preprocess
    return None
