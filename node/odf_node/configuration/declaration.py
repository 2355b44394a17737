"""Sections and settings: name, type, bounds, default, meaning, and whether a running node takes a new value."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from odf_engines.cluster import LOCAL_MASTER, MIN_EXECUTOR_BYTES
from odf_node.configuration.setting_rules import SettingRule
from odf_node.configuration.setting_rules import declare as _setting
from odf_node.ports.sources import Commands
from odf_node.records.access import Pages
from odf_protocol.exchange.limits import (
    MAX_ADDRESS_CONNECTIONS,
    MAX_ADDRESS_REQUESTS,
    MAX_CONCURRENT_REQUESTS,
    MAX_CONNECTIONS,
    MAX_PARALLEL_TRANSFERS,
    MAX_VERIFICATIONS,
    MAX_WAITING_VERIFICATIONS,
)

HIGHEST_PORT: Final = 65_535
MAX_LISTED: Final = 100
"""Schedules, sources, and notices.  # guess: patterns name many datasets each"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where others reach this node."""

    address: str = _setting("127.0.0.1", "listen there; 127.0.0.1 is this machine only", reloads=False)
    port: int = _setting(8080, "listen on this port; 0: any free one", reloads=False, highest=HIGHEST_PORT)
    flight_port: int | None = _setting(
        None,
        "listen on this port too, for ADBC and JDBC clients (Arrow Flight SQL); 0: any free one; not set: not at all",
        reloads=False,
        highest=HIGHEST_PORT,
    )
    public_url: str | None = _setting(
        None,
        "http(s)://host:port by which others reach it; requests that nodes sign must be to there, gossip names it",
        reloads=False,
    )
    hosts: str | None = _setting(
        None,
        "further names of this node, between spaces; without any and without a public_url it answers to every name by "
        "which other machines call it",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Encryption of the port; both or none."""

    certificate: Path | None = _setting(None, "PEM file with the certificate and those between it and a root")  # noqa: RUF009
    key: Path | None = _setting(None, "PEM file with its private key, readable by this user alone")  # noqa: RUF009


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """A second port for those who watch the node: /metrics, /health, /ready. Never for strangers."""

    address: str = _setting("127.0.0.1", "listen there", reloads=False)
    port: int | None = _setting(None, "listen on this port; not set: not at all", reloads=False, highest=HIGHEST_PORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Traces of what runs, for OpenTelemetry (odf-node[telemetry]); see observing.md."""

    endpoint: str | None = _setting(
        None,
        "http(s) address to which traces are sent by OTLP, as OTEL_EXPORTER_OTLP_ENDPOINT; not set: as the OTEL_ "
        "variables of the environment say, and without them nowhere",
        reloads=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Events of ingests and derivations, for OpenLineage (odf-node[lineage]); see observing.md."""

    url: str | None = _setting(
        None,
        "http(s) address of a server to which events are POSTed, at api/v1/lineage below it; not set: nowhere",
        reloads=False,
    )
    file: Path | None = _setting(None, "file to which events are appended, one a line; not set: none", reloads=False)  # noqa: RUF009
    namespace: str = _setting(
        "odf-node", "namespace of jobs and datasets in events: a name for this node", reloads=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Who may read."""

    anonymous: bool = _setting(True, "serve published datasets to everybody; false: only to tokens and known nodes")
    pages: str = _setting(
        Pages.TOKEN.value,
        "who is shown web pages, at / and below /-/: off: no one; token: those who sign in at /-/sign-in with a token; "
        "everyone: also without a token, of what they may read",
        choices=tuple(each.value for each in Pages),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What others may cost. 0 means no limit of this kind."""

    requests: int = _setting(MAX_CONCURRENT_REQUESTS, "requests that run at once", lowest=1)
    connections: int = _setting(MAX_CONNECTIONS, "open connections", lowest=1)
    address_requests: int = _setting(
        MAX_ADDRESS_REQUESTS, "requests of one address that run at once; behind a proxy as many as of all", lowest=1
    )
    address_connections: int = _setting(
        MAX_ADDRESS_CONNECTIONS, "open connections of one address; behind a proxy as many as of all", lowest=1
    )
    verifications: int = _setting(
        MAX_VERIFICATIONS, "verifications of what others push, and of news by subscriptions, at once", lowest=1
    )
    waiting_verifications: int = _setting(
        MAX_WAITING_VERIFICATIONS, "how many wait for that, half of them of one pusher; the rest is asked to come later"
    )
    peer_requests_per_minute: int = _setting(0, "requests of one peer: a token, a node, or else an address")
    peer_bytes_per_day: int = _setting(0, "bytes sent to one peer in a day")
    send_bytes_per_second: int = _setting(
        0,
        "rate at which objects, packs and messages of the Smart Transfer Protocol are sent, all connections together",
    )
    receive_bytes_per_second: int = _setting(0, "the same for what is pushed to here")
    fetch_bytes_per_second: int = _setting(
        0, "rate at which the daemon, and each command that names no other, reads from other places and writes to them"
    )
    parallel_transfers: int | None = _setting(
        None,
        "objects that the daemon, and each command that names no other number, moves at once; "
        "not set: 4, 8 with a bucket",
        lowest=1,
        highest=MAX_PARALLEL_TRANSFERS,
    )
    sent_rows_bytes: int = _setting(1_000_000_000, "of rows that are sent in one request (FEED-6)", lowest=1)
    scheduled_pulls: int = _setting(
        2, "pulls by schedules at once, of which one host is asked by one", lowest=1, highest=64
    )
    scheduled_pull_minutes: int = _setting(
        60, "a pull by a schedule is ended after so long, and has failed", lowest=1, highest=10_080
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What the home may take of the disk. 0 means no limit."""

    quota_bytes: int = _setting(0, "pushes that would make the objects larger than this are rejected")
    least_free_bytes: int = _setting(0, "pushes that would leave less room on the disk are rejected")
    refused_bytes: int = _setting(1_000_000_000, "evidence of rejections that is kept (HOME-45)")
    rows_bytes: int = _setting(20_000_000_000, "rows of others, written anew for engines, that are kept (HOME-25)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrub:
    """Reading all objects again, to find bytes that decayed."""

    days: int = _setting(30, "every object is read once in so many days; 0: never", highest=3650)
    bytes_per_second: int = _setting(20_000_000, "rate at which it reads", lowest=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Signing anew which block of each own dataset is the newest, so that a peer that hides newer ones is noticed."""

    renew_hours: int = _setting(24, "sign again after so long; 0: never", highest=8_760)
    valid_hours: int = _setting(168, "a signed head says for so long that nothing is newer", lowest=1, highest=8_760)


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipSection:
    """Telling other nodes what is new, and hearing it from them."""

    enabled: bool = _setting(True, "take part", reloads=False)
    bootstrap: str | None = _setting(None, "addresses of nodes to begin with, between spaces", reloads=False)
    allow_private: bool = _setting(
        False, "connect to private and loopback addresses that peers name: for networks of one's own", reloads=False
    )
    round_milliseconds: int = _setting(2_000, "time between two rounds", reloads=False, lowest=100, highest=3_600_000)


QUERY_ENGINE: Final = "datafusion"
"""Answers queries that name no engine, in its own SQL: a default that is no setting (QUERY-7)."""


INGEST_ENGINE: Final = "arrow"
SLOW_ENGINE: Final = "spark"
"""The one that clusters run; settings of before name it as the one that ingests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Which engine does what no manifest says, and how much at once, for the daemon and for every command."""

    ingest: str = _setting(INGEST_ENGINE, "reads, converts and merges what roots ingest", reloads=False)
    ingest_first: str = _setting(
        "arrow", "empty: where a cluster is set, it merges what roots ingest", reloads=False, may_be_empty=True
    )
    step_rows: int = _setting(
        20_000_000, "rows of an input that one step of a derivative reads at most (PLAN-13)", reloads=False, lowest=1
    )
    step_bytes: int = _setting(1 << 30, "bytes of an input's files that one step reads", reloads=False, lowest=1)
    spark_master: str = _setting(
        LOCAL_MASTER,
        "where Spark runs the steps of this node's own datasets: local[*], here; or spark://host:port, on a standalone "
        "cluster (guides/cluster.md)",
        reloads=False,
    )
    spark_shared_folder: Path | None = _setting(  # noqa: RUF009
        None, "folder of this node alone that has the same path and files on every worker of the cluster", reloads=False
    )
    spark_secret: Path | None = _setting(  # noqa: RUF009
        None, "file with spark.authenticate.secret of the cluster, readable by this user alone", reloads=False
    )
    spark_driver_address: str | None = _setting(
        None,
        "IPv4 address at which workers reach this machine; not set: the one it reaches the master from",
        reloads=False,
    )
    spark_cores: int = _setting(4, "cores of the cluster that are used at once", reloads=False, lowest=1)
    spark_executor_cores: int = _setting(1, "cores of each executor", reloads=False, lowest=1)
    spark_executor_memory_bytes: int = _setting(
        1 << 30, "Java heap of each executor", reloads=False, lowest=MIN_EXECUTOR_BYTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """Roots that are fed from outside."""

    commands: str = _setting(
        Commands.NONE.value,
        "who may run the commands of manifests (prepare step Pipe, fetch step Container): nobody; sandboxed: every "
        "manifest of this node, without network, without files of this machine but its programs; unconfined: every "
        "one, as the node's user, but images (ING-41)",
        choices=tuple(each.value for each in Commands),
    )
    manifest_schedules: bool = _setting(
        True, "own datasets that no [[schedule]] names are pulled as their manifests say (SCHED-11)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceSettings:
    """Datasets that the daemon brings up to date by itself when something that they rest on has changed."""

    datasets: str | None = _setting(
        None,
        "names and % patterns of datasets, between spaces, with all that they rest on; not set: none (CONVERGE-11)",
    )
    manifests: bool = _setting(False, "own datasets whose manifests say so are brought up to date, too (CONVERGE-15)")
    action_minutes: int = _setting(60, "an action is ended after so long, and has failed", lowest=1, highest=10_080)
    action_bytes: int = _setting(0, "an action that read more the last time is left to people; 0: no limit")
    actions_per_hour: int = _setting(120, "actions of one dataset; 0: no limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """How the node ends."""

    grace_seconds: int = _setting(10, "how long requests may go on after the node is stopped", highest=3600)


PRIORITIES: Final = ("high", "normal", "low")
"""Of schedules, the first before the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Own datasets that the daemon pulls by itself; of several [[schedule]] the first that names a dataset holds."""

    datasets: str | None = _setting(
        None, "names and % patterns of this node's own datasets, between spaces; must be set (SCHED-1)"
    )
    every: str | None = _setting(None, "pull them so often: a number with s, m, h or d (15m); this one or cron")
    cron: str | None = _setting(
        None, "pull them then: minute, hour, day of month, month, day of week ('30 4 * * mon-fri')"
    )
    time_zone: str = _setting("UTC", "whose clocks cron means, such as Europe/Berlin")
    derivatives: bool = _setting(True, "pull own derivatives too, right after what they rest on")
    priority: str = _setting(
        "normal", "which go first of those that are due: high, normal or low (SCHED-7)", choices=PRIORITIES
    )
    pause: str | None = _setting(
        None, "leave the host of their sources alone so long between two pulls, as every is written (SCHED-12)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """How often hosts of sources are asked; of several [[source]] the first that names a host holds."""

    at: str | None = _setting(
        None, "hosts, % patterns of them and schemes of addresses (ftp: mqtt:), between spaces; must be set (SCHED-12)"
    )
    pause: str | None = _setting(None, "leave each alone so long between two pulls: 1s to 366d; must be set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Who is told of new blocks by a signed POST; of several [[notice]] each is told."""

    datasets: str | None = _setting(None, "names and % patterns of datasets, between spaces; must be set (NOTICE-1)")
    url: str | None = _setting(None, "http or https address that is notified; must be set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that can be set; without a file, what it says by itself."""

    listen: Listen = field(default_factory=Listen)
    tls: Tls = field(default_factory=Tls)
    observe: Observe = field(default_factory=Observe)
    telemetry: Telemetry = field(default_factory=Telemetry)
    lineage: Lineage = field(default_factory=Lineage)
    access: AccessSettings = field(default_factory=AccessSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    storage: Storage = field(default_factory=Storage)
    scrub: Scrub = field(default_factory=Scrub)
    heads: Heads = field(default_factory=Heads)
    gossip: GossipSection = field(default_factory=GossipSection)
    engines: Engines = field(default_factory=Engines)
    ingest: Ingest = field(default_factory=Ingest)
    converge: ConvergenceSettings = field(default_factory=ConvergenceSettings)
    shutdown: Shutdown = field(default_factory=Shutdown)
    schedule: tuple[Schedule, ...] = ()
    source: tuple[HostSettings, ...] = ()
    notice: tuple[Notice, ...] = ()
    retired: tuple[str, ...] = ()
    """A line for each setting that was given and has no meaning any more."""


SECTIONS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "listen": Listen,
        "tls": Tls,
        "observe": Observe,
        "telemetry": Telemetry,
        "lineage": Lineage,
        "access": AccessSettings,
        "limits": LimitSettings,
        "storage": Storage,
        "scrub": Scrub,
        "heads": Heads,
        "gossip": GossipSection,
        "engines": Engines,
        "ingest": Ingest,
        "converge": ConvergenceSettings,
        "shutdown": Shutdown,
    }
)

LISTS: Final[Mapping[str, type]] = MappingProxyType({"schedule": Schedule, "source": HostSettings, "notice": Notice})
"""Sections that a file may have several of, as ``[[schedule]]``; not to be set by the environment."""

_TYPES: Final = {
    str: "string",
    str | None: "string",
    int: "integer",
    bool: "boolean",
    Path | None: "path",
    int | None: "integer",
    str | None: "string",
}


def settings_of(section: str) -> dict[str, Field[Any]]:
    """Return the settings of a section by name."""
    return {declared.name: declared for declared in fields({**SECTIONS, **LISTS}[section])}


def rule_of(declared: "Field[Any]") -> SettingRule:
    """Return what a setting may be."""
    rule: SettingRule = declared.metadata["rule"]
    return rule


def type_of(declared: "Field[Any]") -> str:
    """Return ``string``, ``integer``, ``boolean`` or ``path``."""
    return _TYPES[declared.type]  # type: ignore[index]
