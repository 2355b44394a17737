"""The composition root: the one place that knows which adapter stands behind which port."""

import os
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.acceptance.refusals import Rejections
from odf_node.accesses import AccessPlaces, FoundAccessLogs
from odf_node.adapters.block_stage import FileStage
from odf_node.adapters.clocks import FixedClock, SystemClock
from odf_node.adapters.login_file import LoginFile
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.adapters.policy_file import read_policies
from odf_node.adapters.rerun_homes import find_copied_home, open_keys
from odf_node.byte_rate import ByteRate
from odf_node.datasets.deletion import Deletion
from odf_node.datasets.exporting import Exporting
from odf_node.engine_workspace import EngineWorkspace
from odf_node.errors import UsageError
from odf_node.exchange.logins import Logins
from odf_node.exchange.pull_planning import PullPlanner
from odf_node.exchange.pushing import Pushing
from odf_node.exchange.remotes import Remotes
from odf_node.exchange.tokens import Tokens
from odf_node.home import Home
from odf_node.home_folder import HomeFolder, find_default_home
from odf_node.ports.clock import Clock
from odf_node.ports.sources import Commands
from odf_node.read_models import ReadModels
from odf_node.records.errors import mapped_os_errors
from odf_node.settings_kept import KeepsToSettings
from odf_node.store import MetadataStore
from odf_node.store.audit_trail import AuditTrail
from odf_node.upkeep.scrubbing import Scrubber
from odf_node.upkeep.sweeping import Sweeper
from odf_protocol.timestamp import Timestamp
from odf_protocol.transform_plan import StepBound

if TYPE_CHECKING:
    from odf_node.acceptance.acceptor import Acceptor
    from odf_node.adapters.outgoing import Outgoing
    from odf_node.configuration.declaration import Configuration
    from odf_node.datasets.creation import DatasetCreator
    from odf_node.datasets.queries import QueryRunner
    from odf_node.datasets.reading import DataReader
    from odf_node.derive.grading import TransformGrader
    from odf_node.derive.transforms import Transformer
    from odf_node.engines.sessions import EngineHost
    from odf_node.engines.warm_sessions import WarmEngines
    from odf_node.exchange.bringing import Bringing
    from odf_node.exchange.peering import Peers
    from odf_node.exchange.pulling import BatchPulling, Pulling
    from odf_node.exchange.receiving import PushJudge
    from odf_node.exchange.subscriptions import Subscriptions
    from odf_node.exchange.taking import Taking
    from odf_node.ingest.ingestion import Ingestor
    from odf_node.ports.engines import EngineFiles
    from odf_node.ports.progress import OnProgress
    from odf_node.trust.trusting import TrustReport
    from odf_node.trust.verifying import Verifier
    from odf_node.upkeep.derived_cache import DerivedCache
    from odf_node.upkeep.repairing import Repairing
    from odf_protocol.accept_policies import PolicySet

REJECTED_BYTES: Final = 1_000_000_000
"""Evidence of rejections that is kept where no setting says otherwise; ``storage.refused_bytes`` of the daemon."""


class Node(KeepsToSettings):
    """One home with every service over it, each made when it is first asked for.

    What works with rows, engines or a network is imported where it is made: ``list`` takes half a second at most.
    """

    def __init__(self, folder: HomeFolder, clock: Clock) -> None:
        self.store, self.objects, self.keys, self.clock = (
            MetadataStore(folder),
            ObjectFolder(folder),
            open_keys(folder),
            clock,
        )
        super().__init__(Home(folder, self.store, self.objects, self.keys, clock, AuditTrail(self.store, clock)))
        self.store.access = FoundAccessLogs(AccessPlaces(folder, self.keys, clock, self.store))
        self.refused_bytes, self.commands = REJECTED_BYTES, Commands.NONE
        self.warm: WarmEngines | None = None  # of the daemon

    def keep_to_settings(self) -> "Configuration":
        """Keep to the settings of the home, as whatever opens a node for a while does; the daemon has its own way.

        Source: HOME-25, HOME-45, ING-17.

        Raises:
            ConfigurationError: They cannot be used.
        """
        settings = self.settings
        self.refused_bytes = settings.storage.refused_bytes
        self.commands = Commands(settings.ingest.commands)
        self.objects.rows.limit_bytes = settings.storage.rows_bytes
        return settings

    def now(self) -> Timestamp:
        """The time that this run writes with."""
        return self.clock.now()

    def record(self, command: str, subject: str, detail: str = "") -> None:
        """Add a line about a command that changed something to the audit log (a rejection changes none: ACCEPT-6)."""
        self.home.audit.note(command, subject, detail)

    def stop_engines(self) -> None:
        """End engines at once, from any thread: requests that run fail, and no new ones are taken."""
        if "engines" in self.__dict__:
            self.engines.stop()

    def close(self) -> None:
        """End engines and close the database."""
        if "engines" in self.__dict__:
            self.engines.close()
        self.store.access.close()
        self.store.close()
        self.flush_observer()

    @cached_property
    def engines(self) -> "EngineHost":
        """Engine sessions of this run."""
        from odf_node.engines.sessions import EngineHost

        parts = EngineWorkspace(self.home.folder.engines), self.objects.rows, self.engine_files
        return EngineHost(*parts, roles=self.engine_roles, observer=self.observer, warm=self.warm)

    @cached_property
    def engine_files(self) -> "EngineFiles":
        """Engines that the operator added."""
        from odf_node.engines.files import open_engine_files

        return open_engine_files(self.home.folder)

    @cached_property
    def rate(self) -> ByteRate:
        """Of what is read from others and pushed to them."""
        return ByteRate()

    def limit_transfers(self, bytes_per_s: int, parallel: int | None) -> None:
        """Bound what begins from now on: how fast it moves (0: no limit), how many objects at once (None: usual)."""
        self.rate.set(bytes_per_s)
        self.outgoing.parallel = parallel

    @cached_property
    def outgoing(self) -> "Outgoing":
        """Connections to others."""
        from odf_node.adapters.outgoing import Outgoing

        return Outgoing(self.home, self.rate, lambda url: self.logins.find_token(url))

    @property
    def refusals(self) -> Rejections:
        """Evidence of rejections; as much is kept as ``refused_bytes`` says now."""
        return Rejections(self.home.folder.refused, limit_bytes=self.refused_bytes)

    @property
    def sweeper(self) -> Sweeper:
        """Behind ``gc``, and before whatever writes."""
        return Sweeper(self.home, self.refusals, SystemClock().now)

    @cached_property
    def scrubber(self) -> Scrubber:
        """Behind ``scrub``."""
        return Scrubber(self.home)

    @cached_property
    def creator(self) -> "DatasetCreator":
        """Behind ``add``."""
        from odf_node.datasets.creation import DatasetCreator

        return DatasetCreator(self.home)

    @cached_property
    def grader(self) -> "TransformGrader":
        """Judges transforms before ``add`` makes datasets of them."""
        from odf_node.derive.grading import TransformGrader

        return TransformGrader(self.store, self.engines)

    @cached_property
    def deletion(self) -> Deletion:
        """Behind ``delete``."""
        return Deletion(self.home)

    @cached_property
    def reader(self) -> "DataReader":
        """Behind ``tail``."""
        from odf_node.datasets.reading import DataReader

        return DataReader(self.home)

    @cached_property
    def ingestor(self) -> "Ingestor":
        """Behind ``ingest`` and ``pull`` of roots."""
        from odf_node.ingest.ingestion import Ingestor
        from odf_node.sources import open_sources

        sources = open_sources(self.home.folder, self.rate, self.commands)
        return Ingestor(self.home, self.engines, sources, os.environ)

    @cached_property
    def transformer(self) -> "Transformer":
        """Behind ``pull`` of derivatives."""
        from odf_node.derive.transforms import Transformer

        bound = StepBound(self.engine_roles.step_rows, self.engine_roles.step_bytes)
        return Transformer(self.home, self.engines, bound)

    @cached_property
    def queries(self) -> "QueryRunner":
        """Behind ``sql``."""
        from odf_node.datasets.queries import QueryRunner

        return QueryRunner(self.home, self.engines)

    @cached_property
    def read_models(self) -> ReadModels:
        """Behind commands that show something."""
        return ReadModels(self.home, lambda: self.engine_files)

    @property
    def trust(self) -> "TrustReport":
        """Behind ``trust``."""
        from odf_node.trust.trusting import TrustReport

        return TrustReport(self.home, self.engines, self.refusals, self.read_policies())

    @cached_property
    def verifier(self) -> "Verifier":
        """Behind ``verify``."""
        from odf_node.trust.verifying import Verifier

        return Verifier(self.home, self.engines)

    @cached_property
    def pulling(self) -> "Pulling":
        """Behind ``pull``."""
        from odf_node.exchange.pulling import Pulling

        parts = self.ingestor, self.transformer, self.taking, self.outgoing.open_peer, self.bringing
        return Pulling(self.home, *parts)

    @cached_property
    def batches(self) -> "BatchPulling":
        """Behind ``pull`` of several datasets."""
        from odf_node.exchange.pulling import BatchPulling

        return BatchPulling(self.pulling, self.planner, self.remotes)

    @cached_property
    def taking(self) -> "Taking":
        """The way of blocks of others into this node."""
        from odf_node.exchange.taking import Taking

        open_stage = partial(FileStage, self.home.folder.staging)
        return Taking(self.home, self.make_acceptor, open_stage, self.bringing)

    @cached_property
    def bringing(self) -> "Bringing":
        """Brings files that are not here by choice."""
        return self.make_bringing(self.engines)

    def make_bringing(self, engines: "EngineHost") -> "Bringing":
        """Make what brings files here, with engines of the caller's."""
        from odf_node.derive.rebuilding import Rebuilder
        from odf_node.exchange.bringing import Bringing

        rebuilder = Rebuilder(self.home, engines)
        return Bringing(self.home, rebuilder, self.remotes, self.outgoing.open_peer)

    @cached_property
    def derived_cache(self) -> "DerivedCache":
        """Behind ``cache drop`` and ``cache list``."""
        from odf_node.upkeep.derived_cache import DerivedCache

        return DerivedCache(self.home, self.objects.rows, self.bringing.rebuilder, self.remotes)

    @cached_property
    def remotes(self) -> Remotes:
        """Behind ``repo``."""
        return Remotes(self.store)

    @cached_property
    def planner(self) -> PullPlanner:
        """Behind ``pull``: which datasets, from where, in which order."""
        return PullPlanner(self.store, self.remotes, self.outgoing.open_peer, self.outgoing.iter_siblings)

    @cached_property
    def pushing(self) -> Pushing:
        """Behind ``push``."""
        from odf_node.adapters.layout_places import find_layout_target

        return Pushing(
            self.home,
            self.outgoing.send_push,
            self.exporting,
            find_layout_target,
            self.observer,
        )

    @cached_property
    def exporting(self) -> Exporting:
        """Behind ``export``, and ``push`` to files."""
        return Exporting(self.home, self.rate)

    @cached_property
    def repairing(self) -> "Repairing":
        """Behind ``repair``."""
        from odf_node.upkeep.repairing import Repairing

        return Repairing(self.home, self.verifier, self.remotes, self.outgoing.open_peer)

    @cached_property
    def push_judge(self) -> "PushJudge":
        """Judges what others push to this node."""
        from odf_node.exchange.receiving import PushJudge

        return PushJudge(self.store, self.taking)

    @cached_property
    def logins(self) -> Logins:
        """Behind ``login`` and ``logout``."""
        from odf_node.adapters.accounts import ask_for_token, validate_token

        return Logins(
            LoginFile(self.home.folder),
            validate_token,
            ask_for_token,
        )

    @cached_property
    def peers(self) -> "Peers":
        """Behind ``peer``."""
        from odf_node.exchange.peering import Peers

        return Peers(self.store, self.clock)

    @cached_property
    def subscriptions(self) -> "Subscriptions":
        """Behind ``subscribe``."""
        from odf_node.exchange.subscriptions import Subscriptions

        return Subscriptions(self.home, self.outgoing.open_peer)

    @cached_property
    def tokens(self) -> Tokens:
        """Behind ``token``."""
        return Tokens(self.home)

    def read_policies(self) -> "PolicySet":
        """Read what the operator accepts on what proof."""
        return read_policies(self.home.folder.policies)

    def make_acceptor(self, on_progress: "OnProgress", now: Timestamp) -> "Acceptor":
        """Make the gate for blocks of others as the policies are now; ``say`` hears about each long step."""
        from odf_node.acceptance.acceptor import Acceptor
        from odf_node.acceptance.rejecting import Rejecter

        rejecter = Rejecter(self.home, self.engines, self.refusals, now)
        return Acceptor(self.home, self.engines, rejecter, on_progress, self.read_policies())


def open_node(home: Path | None, *, system_time: Timestamp | None = None) -> Node:
    """Open the node in ``home`` (None: the default one); nothing is made before something is written.

    Args:
        home: The folder.
        system_time: Every time that this run writes; None: the machine's clock.

    Raises:
        UsageError: The folder is used for something else.
        HomeReadOnlyError: This user may not look into it.
    """
    # Engines and daemons of this home work in other folders, where a relative name is another place.
    named = (home if home is not None else find_default_home(os.environ)).absolute()
    folder = HomeFolder(find_copied_home(named, os.environ))
    with mapped_os_errors(folder.path):
        other_use = folder.find_other_use()
    if other_use is not None:
        raise UsageError(f"{folder.path}: {other_use}")
    return Node(folder, FixedClock(system_time) if system_time else SystemClock())
