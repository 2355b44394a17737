"""Ingests and steps of derivatives as events of OpenLineage.

The library makes events and sends them. Its client is left out: that one looks for files and variables of its own, and
adds what it finds to events. Here settings alone say where they go, and a run what is in them.

Source: clauses OBSERVE-7 to OBSERVE-9 in ``spec/plug-ins/observe.md``; OpenLineage 2-0-2, ``OpenLineage.json``.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, RunEvent, RunState
from openlineage.client.event_v2 import Run as RunId
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

from odf_node import __version__
from odf_node.ports.observing import DatasetVersion, Run, RunKind
from odf_observe.outbox import Outbox
from odf_observe.unread_answers import UnreadAnswers

__all__ = ["PAUSES_S", "LineageEvents", "to_file", "to_server"]

_PRODUCER: Final = f"urn:odf-node:{__version__}"
_JOB_TYPES: Final = {RunKind.INGEST: "INGEST", RunKind.STEP: "TRANSFORM"}
_TIMEOUT_S: Final = 5.0  # as the library's own
PAUSES_S: Final = (0.3, 1.0)
"""Between the tries to send an event to a server.  # guess: a line that broke for a moment is there again"""

_RETRY: Final = {"total": 0}  # whoever sends over HTTP would write the whole address into the log with each try


class Transport(Protocol):
    """Sends events one at a time."""

    def emit(self, event: RunEvent) -> object:
        """Send it, or raise."""
        ...


def to_server(url: str, api_key: str | None) -> Transport:
    """Send events to a server, at ``api/v1/lineage`` below an address."""
    auth = ApiKeyTokenProvider({"api_key": api_key}) if api_key else TokenProvider({})
    place = f"{url.rstrip('/')}/"
    return HttpTransport(HttpConfig(url=place, timeout=_TIMEOUT_S, auth=auth, retry=_RETRY, session=UnreadAnswers()))


def to_file(path: Path) -> Transport:
    """Append events to a file, one a line."""
    return FileTransport(FileConfig(log_file_path=str(path), append=True))


class LineageEvents:
    """See ``Observer``; hears of ingests and steps, and lets other runs be.

    Args:
        transport: Sends events.
        where: They go, for messages.
        namespace: Of jobs and datasets.
        pauses_s: Between tries to send an event; without any there is one try.
    """

    def __init__(self, transport: Transport, where: str, namespace: str, *, pauses_s: Sequence[float] = ()) -> None:
        self._namespace = namespace

        def send(events: Sequence[RunEvent]) -> str | None:
            for event in events:
                _send(transport, event, pauses_s)
            return None

        # One at a time, so that one that is rejected costs no other.
        self._outbox = Outbox("lineage events", where, send, subset=1)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        return {"events": dict(self._outbox.counts)}

    def flush(self) -> None:
        """See ``Observer``."""
        self._outbox.flush()

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        if run.kind not in _JOB_TYPES:
            yield run
            return
        run_id = str(uuid4())
        self._report(run, run_id, RunState.START)
        try:
            yield run
        except BaseException as error:
            self._report(run, run_id, RunState.FAIL, type(error).__name__)
            raise
        self._report(run, run_id, RunState.COMPLETE)

    def _report(self, run: Run, run_id: str, state: RunState, failure: str | None = None) -> None:
        facets: dict[str, RunFacet] = {}
        if failure is not None:
            # No text of it: it may quote a row, or a source's address.
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=failure, programmingLanguage="python", producer=_PRODUCER
            )
        kind = job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="ODF", jobType=_JOB_TYPES[run.kind], producer=_PRODUCER
        )
        self._outbox.put(
            RunEvent(
                eventType=state,
                eventTime=datetime.now(UTC).isoformat(timespec="milliseconds"),
                run=RunId(runId=run_id, facets=facets),
                job=Job(self._namespace, run.dataset.name, facets={"jobType": kind}),
                inputs=[InputDataset(self._namespace, each.name, facets=_facets(each)) for each in run.inputs],
                outputs=[] if run.written is None else [self._output(run, run.written)],
                producer=_PRODUCER,
            )
        )

    def _output(self, run: Run, written: DatasetVersion) -> OutputDataset:
        rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=run.rows, producer=_PRODUCER
        )
        facets = _facets(written)
        return OutputDataset(self._namespace, written.name, facets=facets, outputFacets={"outputStatistics": rows})


def _send(transport: Transport, event: RunEvent, pauses_s: Sequence[float]) -> None:
    for pause_s in pauses_s:
        try:
            transport.emit(event)
        except Exception:  # noqa: BLE001 - of whichever library sends it
            time.sleep(pause_s)
        else:
            return
    transport.emit(event)


def _facets(dataset: DatasetVersion) -> dict[str, DatasetFacet]:
    identity = symlinks_dataset.Identifier(namespace="odf", name=dataset.dataset_id, type="DID")
    facets: dict[str, DatasetFacet] = {
        "symlinks": symlinks_dataset.SymlinksDatasetFacet(identifiers=[identity], producer=_PRODUCER)
    }
    if dataset.block is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=dataset.block, producer=_PRODUCER
        )
    if dataset.columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in dataset.columns]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields, producer=_PRODUCER)
    return facets
