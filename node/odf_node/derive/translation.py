"""Manifests that were written for other engines, with their queries translated (PLAN-17)."""

from dataclasses import dataclass, replace
from typing import Any

from odf_engines.dialects.translation import Translation, translate_transform
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
        MalformedError: As ``translate_transform``.
    """
    found = None
    events = []
    for event in snapshot.metadata:
        query = _query_of(event)
        is_preprocess = not isinstance(event, SetTransform)
        where = f"'{snapshot.name}'"
        translation = None if query is None else translate_transform(query, where=where, is_preprocess=is_preprocess)
        if translation is not None:
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
