"""Datasets that look into each other before any of them has rows: none of them could ever take its first ones.

Source: clause CONV-8 in ``spec/conversion.md``.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UnknownDatasetError
from odf_node.ingest.ingest_rules import find_rules
from odf_node.store import MetadataStore
from odf_protocol.events import SetAttachments
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.manifest.errors import ManifestError


@dataclass(frozen=True, slots=True)
class LookedInto:
    """Says which datasets look into which, as they are here, or will be with the manifests that are added."""

    store: MetadataStore
    added: tuple[DatasetSnapshot, ...] = ()

    def find_circle(self, name: str, of: str) -> tuple[str, ...]:
        """Return the names on a circle of datasets without rows that leads back; none where there is no such circle.

        Args:
            name: Of a dataset that is looked into.
            of: Name of the one whose ingests do so.
        """
        if self._find_without_rows(of) is None:
            return ()
        # A list of what is still to be looked at, as a line of datasets is as long as somebody makes it.
        led_from: dict[str, str | None] = {}
        waiting: list[tuple[str, str | None]] = [(name, None)]
        while waiting:
            asked, before = waiting.pop()
            found = self._find_without_rows(asked)
            if found is None or found[0] in led_from:
                continue
            here, attachments = found
            led_from[here] = before
            if here.lower() == of.lower():
                return (of, *_list_way(led_from, here))
            waiting += [(each, here) for each in reversed(_list_looked_into(attachments))]
        return ()

    def _find_without_rows(self, name: str) -> tuple[str, tuple[SetAttachments, ...]] | None:
        """Find the name and the attachments of a dataset that never had rows; None: it had, or is not here."""
        added, view = self._find_added(name), None
        with suppress(UnknownDatasetError):
            record = get_dataset(self.store, name)
            added, view = self._find_added(record.name), load_view(self.store, record.id)
            name = record.name
        if view is not None and view.schema is not None:
            return None
        if added is not None:
            return added.name, tuple(each for each in added.metadata if isinstance(each, SetAttachments))
        if view is None:
            return None
        return name, () if view.attachments is None else (view.attachments,)

    def _find_added(self, name: str) -> DatasetSnapshot | None:
        return next((each for each in self.added if each.name.lower() == name.lower()), None)


def _list_way(led_from: Mapping[str, str | None], end: str) -> list[str]:
    """List the names from the first one that was looked at to ``end``."""
    way: list[str] = []
    here: str | None = end
    while here is not None:
        way.append(here)
        here = led_from[here]
    return way[::-1]


def _list_looked_into(attachments: Iterable[SetAttachments]) -> list[str]:
    """List the datasets that declared rules name; what cannot be read names none."""
    names: list[str] = []
    for event in attachments:
        with suppress(ManifestError):
            rules = find_rules(event)
            named = (each.dataset_name for each in (*rules.converters, *rules.validators))
            names += [name for name in named if name is not None]
    return names
