"""What a derivative waits for: inputs that have stated no watermark, where its query gives rows by watermarks alone.

Which queries do is the engine's to say (``Grade``), and it takes seconds to ask. Here it is read off the query, since
windows in event time and joins as of a time have one spelling each; it is for people, and decides nothing.

Source: clause PLAN-20 in ``spec/transform.md``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odf_node.datasets.chains import load_view
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.coverage import decode_progress
from odf_protocol.did import DatasetId
from odf_protocol.events import DatasetKind, TransformSql
from odf_protocol.transform_plan import input_ids

_WINDOW: Final = re.compile(r"\b(?:session_)?window\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """An input that has stated no watermark; ``is_own_root``: its owner here can state one by hand."""

    name: str
    is_own_root: bool

    def describe(self) -> str:
        """Say it, and what to do."""
        return f"it waits for a watermark of {self.name}, which has stated none"

    @property
    def command(self) -> str:
        """What to run next."""
        if self.is_own_root:
            return f"odf-node pull {self.name} --set-watermark TIME"
        return f"odf-node inspect plan {self.name}"


def gives_by_watermarks(transform: TransformSql) -> bool:
    """Say whether a query gives rows once watermarks of its inputs allow it, for all that its text says."""
    texts = [each.query for each in transform.queries or ()] + ([transform.query] if transform.query else [])
    return bool(transform.temporal_tables) or any(_WINDOW.search(each) for each in texts)


def find_waited_for(store: MetadataStore, record: DatasetRecord) -> tuple[WaitedFor, ...]:
    """List the inputs without a watermark that a derivative waits for; none for any other dataset."""
    if record.kind is not DatasetKind.DERIVATIVE:
        return ()
    transform = load_view(store, record.id).transform
    if transform is None or not gives_by_watermarks(transform.transform):
        return ()
    tables = {each.name for each in transform.transform.temporal_tables or ()}
    aliases = [each.alias or each.dataset_ref for each in transform.inputs]
    asked = zip(aliases, input_ids(transform), strict=True)
    return tuple(_iter_silent(store, (each for alias, each in asked if not tables or alias in tables)))


def _iter_silent(store: MetadataStore, inputs: Iterator[DatasetId]) -> Iterator[WaitedFor]:
    for dataset_id in inputs:
        found = store.find_dataset(dataset_id)
        if found is not None and decode_progress(store.get_chain_state(dataset_id)[1]).watermark is None:
            is_own_root = found.kind is DatasetKind.ROOT and found.origin is Origin.OWN
            yield WaitedFor(found.name, is_own_root)
