"""Start and end the daemon: the HTTP server over one home, housekeeping and the work of plug-ins beside it."""

import asyncio
import logging
import os
import ssl
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

from aiohttp import web

from odf_node import __version__
from odf_node.composition import Node
from odf_node.configuration.declaration import Configuration, Tls
from odf_node.daemon.background_work import RunningDaemon, background_work
from odf_node.daemon.gauges import make_metrics
from odf_node.daemon.housekeeping import Housekeeping, keep_house
from odf_node.daemon.late_receivers import LatePushJudge, LateRowIntake
from odf_node.daemon.reloading import Setting, open_beside, reload, take_over
from odf_node.daemon.supervisor import notify_supervisor
from odf_node.datasets.searching import Searching
from odf_node.errors import UsageError
from odf_node.http.access_log import write_line
from odf_node.http.encryption import make_tls_context
from odf_node.http.route_tables import add_plug_in_routes
from odf_node.http.served_node import Live, ServedNode
from odf_node.http.server import ListeningAddress
from odf_node.http.server import serve as serve_http
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.metrics import GROUP as METRICS
from odf_node.plug_ins import PlugInFailure, reporting_failures, require_plug_in
from odf_node.ports.keys import PrivateKey
from odf_node.records.access import Pages
from odf_node.rows.trees import KeptTrees
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_node.store.writers_lock import only_daemon
from odf_node.wording import count_of
from odf_protocol.did import DidKey


class DaemonConsole(Protocol):
    """Who started the daemon, as far as it is told anything; everything else is in the log."""

    def note(self, text: str) -> None:
        """Say something about the run."""
        ...

    def warn(self, text: str) -> None:
        """Say something that should be acted on."""
        ...


async def serve(node: Node, setting: Setting, *, ready_file: Path | None, console: DaemonConsole) -> None:
    """Serve until told to stop.

    Args:
        node: What to serve.
        setting: How, and where it is read again at SIGHUP.
        ready_file: Written, whole, once requests are answered; removed at the end.
        console: Hears where the node listens.

    Raises:
        AddressInUseError: The address cannot be listened on.
        HomeServedError: Another daemon serves the home.
        UsageError: The ready file cannot be put where it was asked for, or a setting cannot be used.
    """
    if ready_file is not None and not ready_file.parent.is_dir():
        raise UsageError(f"--ready-file {ready_file}: there is no folder {ready_file.parent}")
    key = await asyncio.to_thread(_prepare, node)
    running = setting.load()
    for line in running.retired:
        write_line("setting-retired", level=logging.WARNING, text=line)
    live = Live(running, make_metrics(node))
    encrypted: list[ssl.SSLContext] = []

    def make_tls(speaks: str) -> ssl.SSLContext | None:
        context = _make_tls(running.tls, speaks)
        encrypted.extend([] if context is None else [context])
        return context

    tls = make_tls("http/1.1")
    grace_s = float(running.shutdown.grace_seconds)
    take_over(node, running)

    def read_again() -> None:
        reload(live, setting, encrypted)
        take_over(node, live.configuration)

    def read_turns() -> TurnLimits:
        limits = live.configuration.limits
        return TurnLimits(limits.verifications, limits.waiting_verifications)

    _require_plug_ins(running)
    stop, verifications = asyncio.Event(), FairSemaphore(read_turns)
    daemon = RunningDaemon(node, live, stop, verifications, make_tls, partial(open_beside, node, live))
    with ExitStack() as at_end:
        at_end.enter_context(only_daemon(node.home.folder))
        at_end.enter_context(reporting_failures(_log_failure))
        if ready_file is not None:
            at_end.callback(ready_file.unlink, missing_ok=True)
        async with (
            keep_house(node, live, console.warn, stop, grace_s) as house,
            background_work(daemon) as start_background_work,
        ):

            def announce(listening: ListeningAddress, app: web.Application) -> None:
                start_background_work(listening, app)
                _announce(node, listening, ready_file, console, pages=Pages(running.access.pages))
                house.renewal.start()
                house.notices.start()

            await serve_http(
                _make_served(node, key, house, verifications),
                host=running.listen.address,
                port=running.listen.port,
                on_ready=announce,
                stop=stop,
                grace_s=grace_s,
                live=live,
                tls=tls,
                on_reload=read_again,
                add_routes=lambda app: add_plug_in_routes(app, node),
            )


def _log_failure(failure: PlugInFailure) -> None:
    write_line(
        "plug-in-broken",
        level=logging.ERROR,
        group=failure.group,
        name=failure.name,
        package=failure.package,
        error=failure.reason,
    )


def _require_plug_ins(settings: Configuration) -> None:
    """Check that what settings ask for can be done.

    Raises:
        UsageError: A setting needs a plug-in that is not installed.
    """
    if settings.listen.flight_port is not None:
        require_plug_in("odf_node.background", "flight", "listen.flight_port")
    if settings.observe.port is not None:
        require_plug_in(METRICS, "prometheus", "observe.port")
    if settings.schedule:
        require_plug_in("odf_node.background", "schedules", "[[schedule]]")
    if settings.converge.datasets is not None or settings.converge.manifests:
        require_plug_in("odf_node.background", "convergence", "[converge]")


def _make_tls(tls: Tls, speaks: str) -> ssl.SSLContext | None:
    if tls.certificate is None or tls.key is None:
        return None
    return make_tls_context(tls.certificate, tls.key, speaks)


def _prepare(node: Node) -> PrivateKey:
    """Find out whether the home can be served before anybody is told that it is, and give the node's key."""
    node.store.list_datasets()
    key = node.keys.get_or_create_node_key()
    # What a crash left is removed while nobody else writes; a busy home is left alone.
    node.sweeper.clean_up()
    return key


def _announce(
    node: Node, listening: ListeningAddress, ready_file: Path | None, console: DaemonConsole, *, pages: Pages
) -> None:
    """Tell people, scripts and the supervisor that requests are answered."""
    count = sum(record.published for record in node.store.list_datasets())
    reach = ", to this machine alone; --address lets others in" if listening.is_local else ""
    console.note(f"serving {count_of(count, 'dataset')} at {listening.url}{reach} (Ctrl-C ends)")
    if pages is not Pages.OFF:
        console.note(f"web pages: {listening.url}/-/sign-in ('odf-node token create ME --inspect' makes a token)")
    if ready_file is not None:
        _write_whole(ready_file, f"{listening.url}\n")
    notify_supervisor(os.environ, "READY=1", f"STATUS=serving at {listening.url}")


def _make_served(node: Node, key: PrivateKey, house: Housekeeping, verifications: FairSemaphore) -> ServedNode:
    return ServedNode(
        software=f"odf-node/{__version__}",
        node_id=DidKey(key.public_key()),
        store=node.store,
        search=Searching(node.store),
        objects=node.objects,
        clock=node.clock,
        disputes=Disputes(node.store),
        key_logs=KeyLogs(node.store),
        trees=KeptTrees(node.objects),
        pushes=LatePushJudge(node),
        rows=LateRowIntake(node),
        rebuilds=house.rebuilds,
        verifications=verifications,
    )


def _write_whole(path: Path, text: str) -> None:
    """Write so that whoever waits for the file never reads a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
