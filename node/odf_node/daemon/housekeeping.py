"""What goes on beside the server for the home's sake, and the order in which it ends (DAEMON-17)."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from odf_node.adapters.keeper_place import KeeperPlace
from odf_node.adapters.kept_session import END_S
from odf_node.adapters.warm_engines import Keeper
from odf_node.composition import Node
from odf_node.configuration.declaration import SLOW_ENGINE
from odf_node.daemon.background_notices import BackgroundNotices
from odf_node.daemon.background_rebuild import BackgroundRebuild
from odf_node.daemon.background_renewal import BackgroundRenewal
from odf_node.daemon.background_scrub import BackgroundScrub
from odf_node.daemon.background_sinks import BackgroundSinks
from odf_node.daemon.reloading import open_beside
from odf_node.daemon.supervisor import notify_supervisor
from odf_node.engine_workspace import EngineWorkspace
from odf_node.http.served_node import Live
from odf_node.program_files import build_of_program

KEPT_IDLE_S: Final = 600.0  # guess: memory of an engine that nobody used for ten minutes is better spent elsewhere

KEEPER_END_S: Final = 2 * END_S + 10.0
"""What the end of the keeper may take: that of another one that was taken over, which is killed, or of an engine."""


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """What goes on beside the server and is asked for something, or is started once the node listens."""

    renewal: BackgroundRenewal
    rebuilds: BackgroundRebuild
    notices: BackgroundNotices
    sinks: BackgroundSinks


@asynccontextmanager
async def keep_house(
    node: Node, live: Live, on_progress: Callable[[str], None], stop: asyncio.Event, grace_s: float
) -> AsyncIterator[Housekeeping]:
    """Care for the home until left; what somebody may wait for ends first, the engine that all share last.

    Args:
        node: Whose home it is.
        live: The settings in force.
        on_progress: Hears what is not as it should be.
        stop: Set when the node was told to stop.
        grace_s: How long engines may go on after that.
    """
    keeper, thread = _start_keeper(node, on_progress)
    care = BackgroundScrub(node, live)
    care.start()

    background = Housekeeping(
        BackgroundRenewal(node, live),
        BackgroundRebuild(partial(open_beside, node, live)),
        BackgroundNotices(node, live),
        BackgroundSinks(node, live),
    )
    background.rebuilds.start()
    engines_end = asyncio.create_task(_stop_engines_late(node, stop, grace_s))
    try:
        yield background
    finally:
        notify_supervisor(os.environ, "STOPPING=1")
        engines_end.cancel()
        await asyncio.to_thread(background.notices.end)
        await asyncio.to_thread(background.sinks.end)
        await asyncio.to_thread(background.rebuilds.end)
        await asyncio.to_thread(care.end)
        await asyncio.to_thread(background.renewal.end)
        keeper.end()
        await asyncio.to_thread(_await_keeper, thread, on_progress)


async def _stop_engines_late(node: Node, stop: asyncio.Event, grace_s: float) -> None:
    """End what engines still verify when the time for it is over; a push that waits for one could not be stopped."""
    await stop.wait()
    await asyncio.sleep(grace_s)
    node.stop_engines()


def _start_keeper(node: Node, on_progress: Callable[[str], None]) -> tuple[Keeper, threading.Thread]:
    """Keep one engine for the commands of this home (DAEMON-19): started by the first that needs it, then warm."""
    keeper = Keeper(
        KeeperPlace(node.home.folder.engines, SLOW_ENGINE),
        EngineWorkspace(node.home.folder.engines),
        build_of_program(),
        KEPT_IDLE_S,
        ends_when_idle=False,
        on_progress=on_progress,
    )

    def keep() -> None:
        try:
            keeper.run()
        except OSError as error:
            # A home that cannot be written is served all the same (DAEMON-18); its commands start engines of their own.
            on_progress(
                f"no engine is kept warm: {error.filename or node.home.folder.engines}: {error.strerror or error}"
            )

    thread = threading.Thread(target=keep, name="engine keeper", daemon=True)
    thread.start()
    return keeper, thread


def _await_keeper(thread: threading.Thread, on_progress: Callable[[str], None]) -> None:
    thread.join(KEEPER_END_S)
    if thread.is_alive():
        # Its processes die with this one, and so does the thread.
        on_progress(f"the keeper of the engine did not end within {KEEPER_END_S:g} s and is left behind")
