"""Manifests that were written for other engines, with their queries translated (PLAN-17)."""

from dataclasses import dataclass, replace
from typing import Any

from odf_engines.dialects.translation import Translation, translate_transform
from odf_protocol.events import SetTransform
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
    """Translate the query of a manifest that names another engine; None: it names this one, or has no query.

    Raises:
        MalformedError: As ``translate_transform``.
    """
    found = None
    events = []
    for event in snapshot.metadata:
        if isinstance(event, SetTransform):
            translation = translate_transform(event.transform, where=f"'{snapshot.name}'")
            if translation is not None:
                found = TranslatedDataset(str(snapshot.name), translation)
                event = replace(event, transform=translation.transform)
        events.append(event)
    return (snapshot if found is None else replace(snapshot, metadata=tuple(events))), found
