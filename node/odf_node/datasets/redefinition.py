"""Mending the definition of a dataset of one's own: a manifest again, for the same identity and history.

A chain is never rewritten: what the manifest says otherwise than the chain becomes new blocks. What rows were made by
stays as it was, so a query that has made rows, and names of columns that rows have, cannot be changed.

Source: clause ING-20 in ``spec/ingest.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.datasets.writer import ChainWriter
from odf_node.errors import UsageError
from odf_node.ports import DatasetRecord, KeyStore, ObjectStore, Origin
from odf_node.ports.chains import ChainStore
from odf_node.ports.commits import CommitStore
from odf_node.ports.documents import DocumentStore
from odf_node.ports.ingests import IngestStore
from odf_protocol.chain.state import ChainState
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddPushSource,
    Event,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
)
from odf_protocol.events.equality import means_the_same
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Redefiner:
    """The use case behind ``odf-node add --replace``, for datasets that are there."""

    chains: ChainStore
    commits: CommitStore
    documents: DocumentStore
    ingests: IngestStore
    objects: ObjectStore
    keys: KeyStore

    def find(self, snapshot: DatasetSnapshot) -> DatasetRecord | None:
        """Find the dataset that a manifest is about; None where it is to be made.

        Raises:
            UsageError: It is not this node's own, or of another kind.
        """
        wanted = str(snapshot.name).lower()
        record = next((each for each in self.chains.list_datasets() if each.name.lower() == wanted), None)
        if record is None:
            return None
        if record.origin is not Origin.OWN:
            raise UsageError(f"'{record.name}' is another node's; only its owner changes it")
        if record.kind is not snapshot.kind:
            kind = record.kind.text.lower()
            raise UsageError(f"'{record.name}' is a {kind} dataset and stays one; choose another name")
        return record

    def redefine(
        self,
        record: DatasetRecord,
        snapshot: DatasetSnapshot,
        resolve: Callable[[SetTransform], SetTransform],
        *,
        system_time: Timestamp,
    ) -> DatasetRecord:
        """Add what the manifest says otherwise than the chain; the record as it is where it says the same.

        Args:
            record: Found by ``find``.
            snapshot: What the dataset shall be from now on.
            resolve: Writes identities where a transform has names.
            system_time: Of the new blocks.

        Raises:
            UsageError: Rows rest on what would be changed.
        """
        view = load_view(self.chains, record.id)
        events = [resolve(event) if isinstance(event, SetTransform) else event for event in snapshot.metadata]
        _require_sources(view, events, record.name)
        writer = ChainWriter.continue_chain(self.chains, self.commits, self.documents, self.keys, record.id)
        try:
            for event in (each for each in events if not _says(view, each)):
                assert writer.state is not None
                _require_free(writer.state, event, record.name)
                writer.add(event, system_time=system_time)
        except RejectedError as error:
            raise UsageError(f"'{record.name}' cannot be changed so: {error}") from error
        if not writer.has_blocks:
            return record
        known = self.ingests.find_merge_state(record.id, view.head)
        # No row changed, so the projected state after the new blocks is the one before them.
        state = known if known is not None and self.objects.has(known) else None
        return writer.commit(signed_at=system_time, objects=self.objects, staged={}, merge_state=state)


def _says(view: DatasetView, event: Event) -> bool:
    """Say whether a chain says so already."""
    match event:
        case SetVocab():
            return Vocabulary.of(event) == view.vocabulary
        case SetInfo():
            return means_the_same(event, view.info)
        case SetLicense():
            return means_the_same(event, view.license)
        case SetAttachments():
            return means_the_same(event, view.attachments)
        case SetPollingSource():
            return means_the_same(event, view.polling_source)
        case AddPushSource(source_name=name):
            return means_the_same(event, view.push_sources.get(name))
        case SetTransform():
            return means_the_same(event, view.transform)
        case SetDataSchema():
            return means_the_same(event.schema, view.schema)
    return False


def _require_sources(view: DatasetView, events: list[Event], name: str) -> None:
    """Refuse to drop a source: not every ODF node reads the events that would disable it (CHAIN-12)."""
    if view.polling_source is not None and not any(isinstance(event, SetPollingSource) for event in events):
        raise UsageError(f"'{name}' has a polling source, which can be changed and not be taken away")
    kept = {event.source_name for event in events if isinstance(event, AddPushSource)}
    if dropped := sorted(view.push_sources.keys() - kept):
        raise UsageError(f"'{name}' has the push source '{dropped[0]}', which can be changed and not be taken away")


def _require_free(state: ChainState, event: Event, name: str) -> None:
    if isinstance(event, SetTransform) and state.has_data_block:
        raise UsageError(f"the query of '{name}' has made rows already; make another dataset of the new query")
    if isinstance(event, SetVocab) and state.has_schema:
        raise UsageError(f"the rows of '{name}' have its columns already; their names cannot be changed")
