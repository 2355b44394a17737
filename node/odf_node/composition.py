"""The composition root: the one place that knows which adapter stands behind which port."""

import os
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import odf_node
import odf_protocol
from odf_node import acceptance, adapters, datasets, derive, engines, exchange, ingest, trust, upkeep
from odf_node.adapters.clocks import FixedClock, SystemClock
from odf_node.adapters.key_files import KeyFiles
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.engine_workspace import EngineWorkspace
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder, find_default_home
from odf_node.ports.clock import Clock
from odf_node.ports.sources import Commands
from odf_node.read_models import ReadModels
from odf_node.records.errors import mapped_os_errors
from odf_node.settings_kept import KeepsToSettings
from odf_node.store import MetadataStore
from odf_node.store.audit_trail import AuditTrail
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_node.byte_rate import ByteRate
    from odf_node.configuration.declaration import Configuration
    from odf_node.engines.sessions import EngineHost
    from odf_node.ports.engines import EngineShelf
    from odf_node.ports.progress import Say
    from odf_node.trust.verifying import Verifier
    from odf_protocol.accept_policies import PolicySet

REFUSED_BYTES: Final = 1_000_000_000
"""Evidence of refusals that is kept where no setting says otherwise; ``storage.refused_bytes`` of the daemon."""


class Node(KeepsToSettings):
    """One home with every service over it, each made when it is first asked for.

    Rooms load a use case when it is first named, so that a light command never pays for a heavy one.
    """

    def __init__(self, home: HomeFolder, clock: Clock) -> None:
        super().__init__(home)
        self.clock = clock
        self.store = MetadataStore(home)
        self.objects = ObjectFolder(home)
        self.trail = AuditTrail(self.store, clock)
        self.keys = KeyFiles(home)
        self.refused_bytes, self.commands = REFUSED_BYTES, Commands.NOBODY

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
        """Add a line about a command that changed something to the audit log (a refusal changes nothing: ACCEPT-6)."""
        self.trail.note(command, subject, detail)

    def stop_engines(self) -> None:
        """End engines at once, from any thread: requests that run fail, and no new ones are taken."""
        if "engines" in self.__dict__:
            self.engines.stop()

    def close(self) -> None:
        """End engines and close the database."""
        if "engines" in self.__dict__:
            self.engines.close()
        self.store.close()
        self.flush_observer()

    @cached_property
    def engines(self) -> "EngineHost":
        """Engine sessions of this run."""
        parts = EngineWorkspace(self.home.engines), self.objects.rows, self.engine_shelf
        host = engines.sessions.EngineHost(*parts, roles=self.engine_roles, observer=self.observer)
        host.find_warm = lambda name: adapters.kept_session.find_warm_engine(self.home.engines, name, os.environ)
        return host

    @cached_property
    def engine_shelf(self) -> "EngineShelf":
        """Engines that the operator added."""
        return adapters.engine_folder.EngineFolder(self.home)

    @cached_property
    def rate(self) -> "ByteRate":
        """Of what is read from others and pushed to them."""
        return odf_node.byte_rate.ByteRate()

    def limit_transfers(self, bytes_per_s: int, parallel: int | None) -> None:
        """Bound what begins from now on: how fast it moves (0: no limit), how many objects at once (None: usual)."""
        self.rate.set(bytes_per_s)
        self.outgoing.parallel = parallel

    @cached_property
    def outgoing(self) -> "adapters.outgoing.Outgoing":
        """Connections to others."""
        parts = self.home, self.store, self.objects, self.keys, self.clock
        return adapters.outgoing.Outgoing(*parts, self.rate, lambda url: self.logins.find_token(url))

    @property
    def refusals(self) -> "acceptance.refusals.Refusals":
        """Evidence of refusals; as much is kept as ``refused_bytes`` says now."""
        return acceptance.refusals.Refusals(self.home.refused, limit_bytes=self.refused_bytes)

    @property
    def sweeper(self) -> "upkeep.sweeping.Sweeper":
        """Behind ``gc``, and before whatever writes."""
        return upkeep.sweeping.Sweeper(self.store, self.objects, self.refusals, self.home, SystemClock().now)

    @cached_property
    def scrubber(self) -> "upkeep.scrubbing.Scrubber":
        """Behind ``scrub``."""
        return upkeep.scrubbing.Scrubber(self.store, self.objects, self.home.cache)

    @cached_property
    def creator(self) -> "datasets.creation.DatasetCreator":
        """Behind ``add``."""
        return datasets.creation.DatasetCreator(self.store, self.objects, self.keys)

    @cached_property
    def grader(self) -> "derive.grading.TransformGrader":
        """Judges transforms before ``add`` makes datasets of them."""
        return derive.grading.TransformGrader(self.store, self.engines)

    @cached_property
    def deletion(self) -> "datasets.deletion.Deletion":
        """Behind ``delete``."""
        return datasets.deletion.Deletion(self.store, self.objects, self.keys, self.clock, self.home)

    @cached_property
    def reader(self) -> "datasets.reading.DataReader":
        """Behind ``tail``."""
        return datasets.reading.DataReader(self.store, self.objects)

    @cached_property
    def ingestor(self) -> "ingest.ingestion.Ingestor":
        """Behind ``ingest`` and ``pull`` of roots."""
        sources = odf_node.sources.open_sources(self.home, self.rate, self.commands)
        parts = self.objects, self.keys, self.engines
        return ingest.ingestion.Ingestor(self.store, *parts, sources, os.environ, self.home.staging)

    @cached_property
    def sinks(self) -> "ingest.sinking.BadRowSinks":
        """Behind ``quarantine deliver``, and the daemon's thread for it."""
        posts = adapters.request_signing.SignedPosts(self.keys, self.clock)
        return ingest.sinking.BadRowSinks(self.store, self.objects, posts, self.home.sinks, self.home.cache, os.environ)

    @cached_property
    def transformer(self) -> "derive.transforms.Transformer":
        """Behind ``pull`` of derivatives."""
        bound = odf_protocol.transform_plan.StepBound(self.engine_roles.step_rows, self.engine_roles.step_bytes)
        return derive.transforms.Transformer(self.store, self.objects, self.keys, self.engines, bound)

    @cached_property
    def queries(self) -> "datasets.queries.QueryRunner":
        """Behind ``sql``."""
        return datasets.queries.QueryRunner(self.store, self.objects, self.engines)

    @cached_property
    def read_models(self) -> ReadModels:
        """Behind commands that show something."""
        return ReadModels(self.store, self.objects, lambda: self.engine_shelf, self.home.cache)

    @property
    def trust(self) -> "trust.trusting.TrustReport":
        """Behind ``trust``."""
        return trust.trusting.TrustReport(self.store, self.engines, self.keys, self.refusals, self.read_policies())

    @cached_property
    def verifier(self) -> "Verifier":
        """Behind ``verify``."""
        return trust.verifying.Verifier(self.store, self.objects, self.engines, self.clock.now)

    @cached_property
    def pulling(self) -> "exchange.pulling.Pulling":
        """Behind ``pull``."""
        parts = self.ingestor, self.transformer, self.taking, self.outgoing.open_peer, self.bringing
        return exchange.pulling.Pulling(self.store, self.trail, self.clock, *parts)

    @cached_property
    def batches(self) -> "exchange.pulling.BatchPulling":
        """Behind ``pull`` of several datasets."""
        return exchange.pulling.BatchPulling(self.pulling, self.planner, self.remotes)

    @cached_property
    def taking(self) -> "exchange.taking.Taking":
        """The way of blocks of others into this node."""
        parts = (
            self.objects,
            self.clock,
            self.make_acceptor,
            partial(adapters.block_stage.FileStage, self.home.staging),
            self.bringing,
        )
        return exchange.taking.Taking(self.store, self.trail, *parts)

    @cached_property
    def bringing(self) -> "exchange.bringing.Bringing":
        """Brings files that are not here by choice."""
        return self.make_bringing(self.engines)

    def make_bringing(self, engines: "EngineHost") -> "exchange.bringing.Bringing":
        """Make what brings files here, with engines of the caller's."""
        rebuilder = derive.rebuilding.Rebuilder(self.store, self.objects, engines)
        return exchange.bringing.Bringing(self.store, self.objects, rebuilder, self.remotes, self.outgoing.open_peer)

    @cached_property
    def derived_cache(self) -> "upkeep.derived_cache.DerivedCache":
        """Behind ``cache drop`` and ``cache list``."""
        held = self.store, self.objects, self.objects.rows
        return upkeep.derived_cache.DerivedCache(*held, self.bringing.rebuilder, self.remotes)

    @cached_property
    def remotes(self) -> "exchange.remotes.Remotes":
        """Behind ``repo``."""
        return exchange.remotes.Remotes(self.store)

    @cached_property
    def planner(self) -> "exchange.pull_planning.PullPlanner":
        """Behind ``pull``: which datasets, from where, in which order."""
        return exchange.pull_planning.PullPlanner(
            self.store, self.remotes, self.outgoing.open_peer, self.outgoing.iter_siblings
        )

    @cached_property
    def pushing(self) -> "exchange.pushing.Pushing":
        """Behind ``push``."""
        return exchange.pushing.Pushing(
            self.store,
            self.objects,
            self.outgoing.send_push,
            self.exporting,
            adapters.layout_places.find_layout_target,
            self.observer,
        )

    @cached_property
    def exporting(self) -> "datasets.exporting.Exporting":
        """Behind ``export``, and ``push`` to files."""
        return datasets.exporting.Exporting(self.store, self.objects, self.rate)

    @cached_property
    def repairing(self) -> "upkeep.repairing.Repairing":
        """Behind ``repair``."""
        return upkeep.repairing.Repairing(
            self.store, self.objects, self.trail, self.verifier, self.remotes, self.outgoing.open_peer
        )

    @cached_property
    def push_judge(self) -> "exchange.receiving.PushJudge":
        """Judges what others push to this node."""
        return exchange.receiving.PushJudge(self.store, self.taking)

    @cached_property
    def logins(self) -> "exchange.logins.Logins":
        """Behind ``login`` and ``logout``."""
        return exchange.logins.Logins(
            adapters.login_file.LoginFile(self.home), adapters.accounts.validate_token, adapters.accounts.ask_for_token
        )

    @cached_property
    def peers(self) -> "exchange.peering.Peers":
        """Behind ``peer``."""
        return exchange.peering.Peers(self.store, self.clock)

    @cached_property
    def subscriptions(self) -> "exchange.following.Subscriptions":
        """Behind ``subscribe``."""
        return exchange.following.Subscriptions(self.store, self.clock, self.outgoing.open_peer)

    @cached_property
    def tokens(self) -> "exchange.tokens.Tokens":
        """Behind ``token``."""
        return exchange.tokens.Tokens(self.store, self.clock)

    def read_policies(self) -> "PolicySet":
        """Read what the operator accepts on what proof."""
        return adapters.policy_file.read_policies(self.home.policies)

    def make_acceptor(self, say: "Say", now: Timestamp) -> "acceptance.acceptor.Acceptor":
        """Make the gate for blocks of others as the policies are now; ``say`` hears about each long step."""
        refuser = acceptance.refusing.Refuser(self.store, self.keys, self.engines, self.refusals, now)
        return acceptance.acceptor.Acceptor(
            self.store, self.objects, self.keys, self.engines, refuser, say, self.read_policies()
        )


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
    folder = HomeFolder((home if home is not None else find_default_home(os.environ)).absolute())
    with mapped_os_errors(folder.path):
        other_use = folder.find_other_use()
    if other_use is not None:
        raise UsageError(f"{folder.path}: {other_use}")
    return Node(folder, FixedClock(system_time) if system_time else SystemClock())
