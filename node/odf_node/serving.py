"""Run the node as a daemon: the HTTP server over one home, and the housekeeping around it."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node import __version__
from odf_node.adapters.keeper_place import KeeperPlace
from odf_node.adapters.warm_engines import Keeper
from odf_node.background_rebuild import BackgroundRebuild
from odf_node.background_renewal import BackgroundRenewal
from odf_node.background_scrub import BackgroundScrub
from odf_node.cli.console import Console
from odf_node.composition import Node
from odf_node.configuration import Limits
from odf_node.engine_workspace import EngineWorkspace
from odf_node.errors import UsageError
from odf_node.gauges import make_metrics
from odf_node.gossiping import GossipTasks, gossip_of
from odf_node.handover.offering import CommandOffer
from odf_node.http.encryption import make_tls_context
from odf_node.http.live import Live
from odf_node.http.served_node import ServedNode
from odf_node.http.server import ListeningAddress
from odf_node.http.server import serve as serve_http
from odf_node.late_push_judge import LatePushJudge
from odf_node.ports.keys import PrivateKey
from odf_node.program_files import build_of_program
from odf_node.reloading import Setting, reload
from odf_node.services.disputes import Disputes
from odf_node.services.key_logs import KeyLogs
from odf_node.services.trees import KeptTrees
from odf_node.supervisor import notify_supervisor
from odf_protocol.did import DidKey

KEPT_ENGINE: Final = "spark"
KEPT_IDLE_S: Final = 600.0  # guess: memory of an engine that nobody used for ten minutes is better spent elsewhere


async def serve(node: Node, setting: Setting, *, ready_file: Path | None, console: Console) -> None:
    """Serve until told to stop.

    Args:
        node: What to serve.
        setting: How, and where it is read again at SIGHUP.
        ready_file: Written, whole, once requests are answered; removed at the end.
        console: Hears where the node listens.

    Raises:
        AddressInUseError: The address cannot be listened on.
        UsageError: The ready file cannot be put where it was asked for, or a setting cannot be used.
    """
    if ready_file is not None and not ready_file.parent.is_dir():
        raise UsageError(f"--ready-file {ready_file}: there is no folder {ready_file.parent}")
    # A home that cannot be read is found out before anybody is told that it is served.
    await asyncio.to_thread(node.store.list_datasets)
    key = await asyncio.to_thread(node.keys.get_or_create_node_key)
    # What a crash left is removed while nobody else writes; a busy home is left alone.
    await asyncio.to_thread(node.clean_up)

    def announce(listening: ListeningAddress, background: _Background, gossiping: GossipTasks | None) -> None:
        count = sum(record.published for record in node.store.list_datasets())
        console.note(f"serving {count} dataset{'' if count == 1 else 's'} at {listening.url} (Ctrl-C ends)")
        background.commands.start()
        if ready_file is not None:
            _write_whole(ready_file, f"{listening.url}\n")
        notify_supervisor(os.environ, "READY=1", f"STATUS=serving at {listening.url}")
        if gossiping is not None:
            gossiping.start(listening)  # which looks after the heads too
        else:
            background.renewal.start()

    running = setting.load()
    live = Live(running, make_metrics(node))
    tls = None
    if running.tls.certificate is not None and running.tls.key is not None:
        tls = make_tls_context(running.tls.certificate, running.tls.key)
    grace_s = float(running.shutdown.grace_seconds)
    node.refused_bytes = running.storage.refused_bytes
    _limit_transfers(node, running.limits)

    def take_over() -> None:
        reload(live, setting, tls)
        _limit_transfers(node, live.configuration.limits)

    stop = asyncio.Event()
    try:
        async with (
            _in_background(node, live, console, stop, grace_s) as background,
            gossip_of(
                node,
                running.gossip,
                running.listen.public_url,
                key.seed,
                tells=lambda: live.configuration.access.anonymous,
                prepare=background.renewal.look,
            ) as gossiping,
        ):
            await serve_http(
                _make_served(node, key, background, gossiping),
                host=running.listen.address,
                port=running.listen.port,
                on_ready=lambda listening: announce(listening, background, gossiping),
                stop=stop,
                grace_s=grace_s,
                live=live,
                tls=tls,
                on_reload=take_over,
            )
    finally:
        if ready_file is not None:
            await asyncio.to_thread(ready_file.unlink, missing_ok=True)


def _make_served(node: Node, key: PrivateKey, background: "_Background", gossiping: GossipTasks | None) -> ServedNode:
    return ServedNode(
        software=f"odf-node/{__version__}",
        node_id=DidKey(key.public_key()),
        store=node.store,
        objects=node.objects,
        clock=node.clock,
        disputes=Disputes(node.store),
        key_logs=KeyLogs(node.store),
        trees=KeptTrees(node.objects),
        pushes=LatePushJudge(node),
        rebuilds=background.rebuilds,
        gossip=None if gossiping is None else gossiping.gossip,
    )


@dataclass(frozen=True, slots=True)
class _Background:
    """What goes on beside the server and is asked for something; renewal is started once the node listens."""

    renewal: BackgroundRenewal
    rebuilds: BackgroundRebuild
    commands: CommandOffer


@asynccontextmanager
async def _in_background(
    node: Node, live: Live, console: Console, stop: asyncio.Event, grace_s: float
) -> AsyncIterator[_Background]:
    """Care for the home until left; what somebody may wait for ends first, the engine that all share last."""
    keeper, thread = _start_keeper(node, console)
    care = BackgroundScrub(node, live)
    care.start()
    background = _Background(
        BackgroundRenewal(node, live),
        BackgroundRebuild(lambda: Node(node.home, node.clock)),
        CommandOffer(node.home.commands, live.configuration.commands),
    )
    background.rebuilds.start()
    engines_end = asyncio.create_task(_stop_engines_late(node, stop, grace_s))
    commands_end = asyncio.create_task(_end_commands(background.commands, stop, grace_s))
    try:
        yield background
    finally:
        notify_supervisor(os.environ, "STOPPING=1")
        engines_end.cancel()
        # What ends without having been told to stop waits for nobody.
        await (commands_end if stop.is_set() else background.commands.end(0))
        commands_end.cancel()
        await asyncio.to_thread(background.rebuilds.end)
        await asyncio.to_thread(care.end)
        await asyncio.to_thread(background.renewal.end)
        keeper.end()
        await asyncio.to_thread(thread.join)


def _limit_transfers(node: Node, limits: Limits) -> None:
    node.limit_transfers(limits.fetch_bytes_per_second, limits.parallel_transfers)


async def _stop_engines_late(node: Node, stop: asyncio.Event, grace_s: float) -> None:
    """End what engines still verify when the time for it is over; a push that waits for one could not be stopped."""
    await stop.wait()
    await asyncio.sleep(grace_s)
    node.stop_engines()


async def _end_commands(commands: CommandOffer, stop: asyncio.Event, grace_s: float) -> None:
    """Let commands end beside the requests, in the same time."""
    await stop.wait()
    await commands.end(grace_s)


def _start_keeper(node: Node, console: Console) -> tuple[Keeper, threading.Thread]:
    """Keep one engine for the commands of this home: started by the first that needs it, then warm."""
    keeper = Keeper(
        KeeperPlace(node.home.engines, KEPT_ENGINE),
        EngineWorkspace(node.home.engines),
        build_of_program(),
        KEPT_IDLE_S,
        ends_when_idle=False,
    )

    def keep() -> None:
        try:
            keeper.run()
        except OSError as error:
            # A home that cannot be written is served all the same; its commands start engines of their own.
            console.warn(f"no engine is kept warm: {error.filename or node.home.engines}: {error.strerror or error}")

    thread = threading.Thread(target=keep, name="engine keeper", daemon=True)
    thread.start()
    return keeper, thread


def _write_whole(path: Path, text: str) -> None:
    """Write so that whoever waits for the file never reads a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
