"""What goes on beside the server for the home's sake, and the order in which it ends (DAEMON-17)."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from odf_node.composition import Node
from odf_node.daemon.background_notices import BackgroundNotices
from odf_node.daemon.background_rebuild import BackgroundRebuild
from odf_node.daemon.background_renewal import BackgroundRenewal
from odf_node.daemon.background_scrub import BackgroundScrub
from odf_node.daemon.reloading import open_beside
from odf_node.daemon.supervisor import notify_supervisor
from odf_node.engines.warm_sessions import END_S, WarmEngines
from odf_node.http.served_node import Live


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """What goes on beside the server and is asked for something, or is started once the node listens."""

    renewal: BackgroundRenewal
    rebuilds: BackgroundRebuild
    notices: BackgroundNotices


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
    node.warm = warm = WarmEngines(node.home.folder.engines)
    warm.start()
    care = BackgroundScrub(node, live)
    care.start()

    background = Housekeeping(
        BackgroundRenewal(node, live),
        BackgroundRebuild(partial(open_beside, node, live)),
        BackgroundNotices(node, live),
    )
    background.rebuilds.start()
    engines_end = asyncio.create_task(_stop_engines_late(node, stop, grace_s))
    try:
        yield background
    finally:
        notify_supervisor(os.environ, "STOPPING=1")
        engines_end.cancel()
        await asyncio.to_thread(background.notices.end)
        await asyncio.to_thread(background.rebuilds.end)
        await asyncio.to_thread(care.end)
        await asyncio.to_thread(background.renewal.end)
        if not await asyncio.to_thread(warm.end):
            # Its processes die with this one.
            on_progress(f"an engine did not end within {END_S:g} s and is left behind")


async def _stop_engines_late(node: Node, stop: asyncio.Event, grace_s: float) -> None:
    """End what engines still verify when the time for it is over; a push that waits for one could not be stopped."""
    await stop.wait()
    await asyncio.sleep(grace_s)
    node.stop_engines()
