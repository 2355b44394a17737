"""What a manifest shows to be impossible here: found by ``add``, with its place, and not by the first ``pull``.

Source: clauses ING-18 in ``spec/ingest.md`` and SCHED-11 in ``spec/schedules.md``.
"""

from dataclasses import dataclass, replace

from odf_engines.engine import IngestEngine
from odf_node.datasets.declared_schedule import check_schedule
from odf_node.ingest.encodings import as_utf8, check_encoding
from odf_node.ingest.rules_check import FindColumns, check_rules, find_row_schema, list_converters
from odf_node.ports.sources import SourceReader
from odf_protocol.events import AddPushSource, SetAttachments, SetPollingSource, SetVocab
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.manifest.errors import At
from odf_protocol.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ManifestCheck:
    """Checks manifests of roots before datasets are made of them; transforms are graded by their engine."""

    sources: SourceReader
    engine: IngestEngine
    find_columns: FindColumns

    def check(self, snapshot: DatasetSnapshot) -> None:
        """Refuse a manifest that could never be pulled or pushed to.

        Raises:
            SnapshotError: What is wrong first, in the order of events.
        """
        vocabulary = Vocabulary()
        for event in snapshot.metadata:
            vocabulary = Vocabulary.of(event) if isinstance(event, SetVocab) else vocabulary
        converters = list_converters(snapshot.metadata)
        reads, schemas = [], []
        for index, event in enumerate(snapshot.metadata):
            at = At() / "metadata" / index
            if isinstance(event, SetPollingSource):
                self.sources.check(event, at)
            if isinstance(event, SetPollingSource | AddPushSource):
                check_encoding(event.read, at / "read")
                self.engine.check_source(
                    replace(event, read=as_utf8(event.read)), vocabulary, at, has_converters=bool(converters)
                )
                reads.append(event.read)
                schema = find_row_schema(event, vocabulary, converters, at, self.find_columns)
                schemas += [] if schema is None else [schema]
        for index, event in enumerate(snapshot.metadata):
            if isinstance(event, SetAttachments):
                check_schedule(event, At() / "metadata" / index)
                check_rules(event, At() / "metadata" / index, reads, schemas, self.find_columns)
