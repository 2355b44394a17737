"""Fixing the definition of a dataset of one's own: a manifest again, for the same identity and history.

A chain is never rewritten: what the manifest says otherwise than the chain becomes new blocks. What rows were made by
stays as it was, so a query that has made rows, and names of columns that rows have, cannot be changed.

Source: clause ING-20 in ``spec/ingest.md``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.datasets.writer import ChainWriter
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.chain.state import ChainState
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddPushSource,
    DatasetKind,
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
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """A definition that becomes another; ``before`` is None where there was none."""

    before: Event | None
    after: Event


@dataclass(frozen=True, slots=True)
class Redefinition:
    """Changes to a dataset that its chain would take, not yet made.

    Attributes:
        record: The dataset as it is.
        changes: One new block for each, in this order.
        writer: Holds the new blocks.
        head: The head that the changes were compared with.
        system_time: Of the new blocks.
    """

    record: DatasetRecord
    changes: tuple[DefinitionChange, ...]
    writer: ChainWriter
    head: Multihash
    system_time: Timestamp


@dataclass(frozen=True, slots=True)
class Redefiner:
    """The use case behind ``odf-node change``, and ``add --replace`` for datasets that are there."""

    home: Home

    def find(self, snapshot: DatasetSnapshot) -> DatasetRecord | None:
        """Find the dataset that a manifest is about; None where it is to be made.

        Raises:
            UsageError: As ``require_changeable``.
        """
        wanted = str(snapshot.name).lower()
        record = next((each for each in self.home.store.list_datasets() if each.name.lower() == wanted), None)
        if record is not None:
            require_changeable(record, snapshot.kind)
        return record

    def plan(
        self,
        record: DatasetRecord,
        metadata: Sequence[Event],
        resolve: Callable[[SetTransform], SetTransform],
        *,
        system_time: Timestamp,
        is_all: bool = True,
    ) -> Redefinition:
        """Find what is to be said otherwise than the chain says it; nothing is written.

        Args:
            record: The dataset.
            metadata: What shall be in force.
            resolve: Writes identities where a transform has names.
            system_time: Of the new blocks.
            is_all: ``metadata`` defines the whole dataset, so what it lacks would have to go.

        Raises:
            UsageError: Rows rest on what would be changed, or the chain would break a rule, which is named.
        """
        view = load_view(self.home.store, record.id)
        events = [resolve(event) if isinstance(event, SetTransform) else event for event in metadata]
        if is_all:
            _require_sources(view, events, record.name)
        writer = ChainWriter.continue_chain(self.home.store, self.home.keys, record.id, after=view.head)
        changes: list[DefinitionChange] = []
        try:
            for event in events:
                if _says(view, event):
                    continue
                assert writer.state is not None
                _require_free(writer.state, event, record.name)
                writer.add(event, system_time=system_time)
                changes.append(DefinitionChange(_find_before(view, event), event))
        except RejectedError as error:
            raise UsageError(f"'{record.name}' cannot be changed this way: {error}") from error
        return Redefinition(record, tuple(changes), writer, view.head, system_time)

    def apply(self, redefinition: Redefinition) -> DatasetRecord:
        """Write all changes in one commit; the record as it is where there are none.

        Raises:
            HeadMovedError: Somebody else wrote meanwhile; nothing was written.
        """
        record, writer = redefinition.record, redefinition.writer
        if not writer.has_blocks:
            return record
        known = self.home.store.find_merge_state(record.id, redefinition.head)
        # No row changed, so the projected state after the new blocks is the one before them.
        state = known if known is not None and self.home.objects.has(known) else None
        return writer.commit(
            signed_at=redefinition.system_time, objects=self.home.objects, staged={}, merge_state=state
        )


def require_changeable(record: DatasetRecord, kind: DatasetKind | None = None) -> None:
    """Reject to change a dataset of somebody else, or one into another kind.

    Raises:
        UsageError: It is one.
    """
    if record.origin is not Origin.OWN:
        raise UsageError(f"'{record.name}' is another node's; only its owner changes it")
    if kind not in {None, record.kind}:
        text = record.kind.text.lower()
        raise UsageError(f"'{record.name}' is a {text} dataset and stays one; choose another name")


def _find_before(view: DatasetView, event: Event) -> Event | None:
    """Find what is in force where an event is to be."""
    match event:
        case SetInfo():
            return view.info
        case SetLicense():
            return view.license
        case SetAttachments():
            return view.attachments
        case SetPollingSource():
            return view.polling_source
        case AddPushSource(source_name=name):
            return view.push_sources.get(name)
        case SetTransform():
            return view.transform
        case SetDataSchema():
            return None if view.schema is None else SetDataSchema(schema=view.schema)
    return None


def _says(view: DatasetView, event: Event) -> bool:
    """Say whether a chain says so already."""
    match event:
        case SetVocab():
            return Vocabulary.of(event) == view.vocabulary
        case SetDataSchema():
            return means_the_same(event.schema, view.schema)
    return means_the_same(event, _find_before(view, event))


def _require_sources(view: DatasetView, events: list[Event], name: str) -> None:
    """Do not drop a source: not every ODF node reads the events that would disable it (CHAIN-12)."""
    if view.polling_source is not None and not any(isinstance(event, SetPollingSource) for event in events):
        raise UsageError(f"'{name}' has a polling source, which can be changed and not be taken away (CHAIN-12)")
    kept = {event.source_name for event in events if isinstance(event, AddPushSource)}
    if dropped := sorted(view.push_sources.keys() - kept):
        raise UsageError(
            f"'{name}' has the push source '{dropped[0]}', which can be changed and not be taken away (CHAIN-12)"
        )


def _require_free(state: ChainState, event: Event, name: str) -> None:
    if isinstance(event, SetTransform) and state.has_data_block:
        raise UsageError(
            f"the query of '{name}' has made rows already, and all its rows have to be of one query (ING-20, VIEW-11); "
            "make another dataset of the new query"
        )
    if isinstance(event, SetVocab) and state.has_schema:
        raise UsageError(f"the rows of '{name}' have its columns already; their names cannot be changed (CHAIN-49)")
