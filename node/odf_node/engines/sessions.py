"""Engine sessions of one run of the node: opened when first needed, ended with the run, one for each foreign dataset.

What this node's operator wrote (own transforms, ingests, questions) shares one session of each engine, in a daemon with
all else that it does for its operator. Every foreign dataset that is
re-executed gets a session of its own, so that one stranger's query cannot prepare the ground for another's. Where the
settings name a cluster, steps of own datasets run there, and nothing else does.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from odf_engines.contract import IngestRequest, IngestResponse, Limits, PreparedRows, QueryRequest, QueryResponse
from odf_engines.engine import (
    Capability,
    ClusterEngine,
    Engine,
    EngineSession,
    IngestEngine,
    IngestSession,
    QuerySession,
    ReportsProgress,
)
from odf_engines.errors import EngineMissingError
from odf_engines.reading.files import read_table
from odf_engines.registry import engines_offering, find_preprocess_engine, get_ingest_engine
from odf_engines.stage_metrics import MAX_SAMPLE_ROWS, IngestStage, SampledStage, StageClock, merge_stages
from odf_node.configuration.declaration import INGEST_ENGINE, QUERY_ENGINE, SLOW_ENGINE, Engines
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.cluster import find_cluster, opened_on_cluster
from odf_node.engines.finding import choose_build, get_engine_here, is_installed
from odf_node.engines.warm_sessions import WarmEngines
from odf_node.ports.engines import EngineFiles
from odf_node.ports.observing import UNOBSERVED, Observer
from odf_node.ports.progress import NO_PROGRESS, Count, OnProgress
from odf_node.ports.rows import RowsCache
from odf_node.records.errors import mapped_os_errors
from odf_protocol.events import AddPushSource, SetPollingSource, TransformSql
from odf_protocol.multihash import Multihash

_NOT_CONVERTED: Final = "not-converted.parquet"


@dataclass(slots=True)
class EngineHost:
    """Opens engines in sandboxes; used by one thread at a time.

    ``warm`` lends sessions that outlive this run, for work of the node's operator alone; only a daemon has it.
    ``rows`` has what engines read, by object. ``roles`` names the engines for work that no manifest gives to one.
    ``shelf`` has the engines that the operator added; those that are installed come first. Which engine is meant is
    said as in ``finding``: ``NAME`` or ``NAME@DIGEST``. ``observer`` hears what runs.
    """

    own_workspace: EngineWorkspace
    rows: RowsCache
    engine_files: EngineFiles | None = None
    limits: Limits = field(default_factory=Limits)
    warm: WarmEngines | None = None
    roles: Engines = field(default_factory=Engines)
    observer: Observer = UNOBSERVED
    _own: dict[str, EngineSession] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _open_sessions: list[EngineSession] = field(default_factory=list)
    _digests: dict[str, Multihash] = field(default_factory=dict)
    _is_stopped: bool = False
    _on_progress: OnProgress = NO_PROGRESS

    @property
    def workspace(self) -> Path:
        """Where engines of this process work; gone with ``close``."""
        return self.own_workspace.path

    def choose_build(self, transform: TransformSql, made_by: Multihash | None = None) -> str:
        """Say which build computes a step, as the other functions here take it; see ``finding.choose_build``."""
        return choose_build(transform, made_by, self.engine_files, self.get_digest)

    def has_several(self, name: str) -> bool:
        """Say whether there are several builds of an engine name."""
        added = 0 if self.engine_files is None else len(self.engine_files.find(name))
        return added + is_installed(name) > 1

    def get_digest(self, name: str) -> Multihash:
        """Return the digest of a build, as it was when this run first asked for it.

        Raises:
            EngineMissingError, HomeCorruptError: As ``get_engine``.
            EngineFailureError: Its files are not those that were added.
        """
        if name not in self._digests:
            self._digests[name] = self.get_engine(name).digest()
        return self._digests[name]

    def get_engine(self, name: str) -> Engine:
        """Return the engine called ``name``, or the build of it called ``name@digest``.

        Raises:
            EngineMissingError: There is none; the message names it and those that are there.
            HomeCorruptError: One that was added, and may be the one that is meant, cannot be read.
        """
        return get_engine_here(name, self.engine_files)

    def get_ingest_engine(self) -> IngestEngine:
        """Return the engine that ingests.

        Raises:
            EngineMissingError: It is not installed here, or does not ingest.
        """
        # Settings of before may name Spark, which merges on a cluster alone.
        is_of_before = self.roles.ingest.lower() == SLOW_ENGINE
        return get_ingest_engine(INGEST_ENGINE if is_of_before else self.roles.ingest)

    def require_ingest(self, source: SetPollingSource | AddPushSource) -> None:
        """Make sure, before anything is fetched, that engines for what a source declares are here.

        Raises:
            EngineMissingError: They are not.
        """
        if source.preprocess is not None:
            self.find_preprocess_engine(source.preprocess)
        self.get_ingest_engine()

    def find_preprocess_engine(self, transform: TransformSql) -> str:
        """Return the engine that runs a preprocess step.

        Raises:
            EngineMissingError: The one that it names is not here, or runs none.
        """
        return find_preprocess_engine(transform.engine)

    def ingest(self, request: IngestRequest) -> IngestResponse:
        """Ingest a source; its query, if it has one, runs on the engine that it names, behind conversion (ING-7).

        Raises:
            InvalidSourceError, InvalidQueryError, EngineError: As ``IngestSession.ingest``.
        """
        query = request.preprocess
        if query is None:
            return self._ingest_session(request).ingest(request)
        engine = self.find_preprocess_engine(query)
        read = self.convert(request)
        # The engine that gave them is asked again.
        kept = None if read.quarantine is None else Path(shutil.move(read.quarantine, self.workspace / _NOT_CONVERTED))
        clock = StageClock()
        with clock.measuring_alone(IngestStage.PREPROCESS, engine.lower()) as sums:
            made = self.publishing_session(engine).preprocess(query, read.rows)
            sums.count(rows_out=made.rows)
        samples = dict(read.samples)
        if request.has_samples:
            samples[SampledStage.QUERIED] = read_table(made.result_path, most=MAX_SAMPLE_ROWS)
        read = replace(read, rows=made.result_path, quarantine=kept, samples={})
        prepared = replace(request, converters=(), has_samples=False, prepared=read)
        response = self._ingest_session(request).ingest(prepared)
        stages = merge_stages((*read.stages, *clock.figures, *response.statistics.stages))
        return replace(response, statistics=replace(response.statistics, stages=stages), samples=samples)

    def convert(self, request: IngestRequest) -> PreparedRows:
        """Read and convert a source, and do no more.

        Raises:
            InvalidSourceError, EngineError: As ``IngestSession.convert``.
        """
        return self._ingest_session(request).convert(request)

    def _ingest_session(self, request: IngestRequest) -> IngestSession:
        """Return the session that ingests: on the cluster, where there is one and the settings want it (CLUSTER-1)."""
        # Merge strategies of other packages are run here.
        is_for_cluster = request.strategy is None and not self.roles.ingest_first
        if is_for_cluster and find_cluster(self.roles) is not None:
            return self.publishing_session(SLOW_ENGINE)
        return self._quick_session(self.get_ingest_engine().name)

    def _quick_session(self, name: str) -> IngestSession:
        """Return the session of an engine that starts at once, so that none is kept warm for it."""
        if name not in self._own:
            self._own[name] = self._stack.enter_context(self._open(name))
        return self._own[name]

    def query(self, request: QueryRequest, name: str | None = None) -> tuple[str, QueryResponse]:
        """Answer a query with the engine called ``name``; None: with DataFusion (QUERY-7).

        Returns:
            Which engine answered, and its answer.

        Raises:
            EngineMissingError: It is not installed here, or answers none.
            InvalidQueryError, LimitExceededError, EngineFailureError: As ``QuerySession.query``.
        """
        return name or QUERY_ENGINE, self.query_session(name).query(request)

    def query_session(self, name: str | None = None) -> QuerySession:
        """Return the session of an engine that answers questions, as ``own_session``; None: of DataFusion.

        Raises:
            EngineMissingError: It is not installed here, or answers none.
        """
        return self.own_session(self.get_answering_engine(name).name)

    def get_answering_engine(self, name: str | None = None) -> Engine:
        """Return an engine that answers queries; None: DataFusion.

        Raises:
            EngineMissingError: It is not installed here, or answers none.
        """
        engine = self.get_engine(name or QUERY_ENGINE)
        if Capability.QUERY not in engine.capabilities:
            raise EngineMissingError(engine.name, self.list_answering_engines(), capability=Capability.QUERY.value)
        return engine

    def list_answering_engines(self) -> tuple[str, ...]:
        """List the names of installed engines that answer questions."""
        return engines_offering(Capability.QUERY)

    def own_session(self, name: str) -> EngineSession:
        """Return the session for work of this node's operator, started at the first call."""
        if name not in self._own:
            # An engine that was added can be removed from the shelf at any time.
            session = None if self._is_added(name) else self._find_warm(name)
            self._own[name] = self._stack.enter_context(session or self._open(name))
        return self._own[name]

    def publishing_session(self, name: str) -> EngineSession:
        """Return the session for the next step of an own dataset: on the cluster, where the engine has one (CLUSTER-1).

        Raises:
            ClusterUnavailableError: The cluster cannot be used; no other place takes its.
        """
        cluster = find_cluster(self.roles)
        if cluster is None or not isinstance(engine := self.get_engine(name), ClusterEngine):
            return self.own_session(name)
        if cluster.master not in self._own:
            session = self._stack.enter_context(opened_on_cluster(engine, cluster, self.limits))
            self._own[cluster.master] = self._watched(session, name)
        return self._own[cluster.master]

    @contextmanager
    def foreign_session(self, name: str) -> Iterator[EngineSession]:
        """Open a fresh session for the steps of one foreign dataset; it ends with the block."""
        with self._open(name) as session:
            try:
                yield session
            finally:
                self._open_sessions.remove(session)

    @contextmanager
    def heard_by(self, on_progress: OnProgress) -> Iterator[None]:
        """Let somebody hear, from whichever thread, when an engine says that it is at work (ADDED-7)."""
        before, self._on_progress = self._on_progress, on_progress
        try:
            yield
        finally:
            self._on_progress = before

    def stop(self) -> None:
        """End every session's process at once, from any thread; requests that run or come later fail."""
        self._is_stopped = True
        for session in tuple(self._open_sessions):
            session.stop()

    def renew(self) -> None:
        """End all sessions at once; what is asked later starts new ones."""
        self.stop()
        self._end_sessions()
        self._is_stopped = False

    def close(self) -> None:
        """End all sessions."""
        self._end_sessions()
        self.own_workspace.close()

    def _end_sessions(self) -> None:
        self._stack.close()
        self._own.clear()
        self._open_sessions.clear()

    def _is_added(self, name: str) -> bool:
        return not is_installed(name)

    def _find_warm(self, name: str) -> EngineSession | None:
        if self.warm is None:
            return None
        with mapped_os_errors(self.workspace):
            return self._watched(self.warm.lend(name, self.workspace, partial(self._open, name)), name)

    def _open(self, name: str) -> EngineSession:
        with mapped_os_errors(self.workspace):
            return self._watched(self.get_engine(name).open(self.workspace, self.limits), name)

    def _hear(self, name: str, count: int) -> None:
        if self._is_added(name):  # ODF's contract has no more to say (ADDED-7)
            self._on_progress(f"engine '{name}' is at work ({count:,} signs of it)")
        else:
            self._on_progress("reading records", Count(count, None, "rows"))

    def _watched(self, session: EngineSession, name: str) -> EngineSession:
        """Make the session one that ``stop`` finds, and whose progress is heard."""
        if isinstance(session, ReportsProgress):
            session.on_progress = partial(self._hear, name)
        self._open_sessions.append(session)
        # Whoever stopped the host may have looked at the list before this session was in it.
        if self._is_stopped:
            session.stop()
        return session
