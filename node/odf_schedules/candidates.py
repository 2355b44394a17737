"""Which datasets of this node a schedule can name: its own roots with a source to poll, and its own derivatives."""

from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from odf_node.configuration.declaration import Schedule
from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UnknownDatasetError
from odf_node.ingest.followed_rows import find_place
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.events import FetchStepMqtt, FetchStepUrl, SetPollingSource
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.multihash import Multihash
from odf_protocol.transform_plan import input_ids
from odf_schedules.declared_schedule import find_schedule
from odf_schedules.timetable import DueCandidate


@dataclass
class CandidateReader:
    """Reads chains that grew since it read them last; there may be ten thousand others."""

    store: MetadataStore
    _known: dict[DatasetId, tuple[Multihash, str, DueCandidate | None]] = field(default_factory=dict)

    def list_candidates(self) -> list[DueCandidate]:
        """List them, in the order of their names."""
        records = [record for record in self.store.list_datasets() if record.origin is Origin.OWN]
        self._known = {record.id: self._read(record) for record in records}
        return [candidate for _, _, candidate in self._known.values() if candidate is not None]

    def _read(self, record: DatasetRecord) -> tuple[Multihash, str, DueCandidate | None]:
        known = self._known.get(record.id)
        if known is not None and known[:2] == (record.head.hash, record.name):
            return known
        try:
            candidate = self._candidate_of(record, load_view(self.store, record.id))
        except OdfError:
            candidate = None  # 'status' and 'verify' say what is wrong with it; it must not stop the others
        return record.head.hash, record.name, candidate

    def _candidate_of(self, record: DatasetRecord, view: DatasetView) -> DueCandidate | None:
        if record.kind is DatasetKind.DERIVATIVE:
            inputs = () if view.transform is None else tuple(input_ids(view.transform))
            return DueCandidate(record.id, record.name, inputs, schedule=_schedule_of(record, view))
        source = view.polling_source
        if source is None:
            return None
        scheme, host = _address_of(source)
        followed = find_place(source.fetch)
        inputs = ()
        if followed is not None:
            with suppress(UnknownDatasetError):  # the pull says so
                inputs = (get_dataset(self.store, followed.name).id,)
        return DueCandidate(record.id, record.name, inputs, host, _schedule_of(record, view), scheme)


def _schedule_of(record: DatasetRecord, view: DatasetView) -> Schedule | None:
    """Say what the dataset declares; what this program cannot follow, as it did not write it, is nothing."""
    with suppress(ManifestError):
        return find_schedule(view.attachments, record.name)
    return None


def _address_of(source: SetPollingSource) -> tuple[str, str | None]:
    """Say how and where a source is asked, as the manifest writes it; no host: on this machine."""
    match source.fetch:
        case FetchStepUrl(url=url):
            with suppress(ValueError):  # no address; the pull says so
                address = urlsplit(url)
                return address.scheme, address.hostname
        case FetchStepMqtt(host=host):
            return "mqtt", host.lower()
    return "", None
