"""Run gossip and subscriptions beside the HTTP server of a node (GOSSIP-52)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from aiohttp import web

from odf_gossip.client import GossipClient
from odf_gossip.following import Follower
from odf_gossip.gossiping import Gossip
from odf_gossip.hearsay import Hearsay
from odf_gossip.home_reading import HomeReader
from odf_gossip.route import ANSWERING
from odf_gossip_protocol import GossipSettings
from odf_node.adapters.policy_file import WatchedPolicies
from odf_node.composition import Node
from odf_node.configuration.declaration import GossipSection as Section
from odf_node.daemon.background_work import BackgroundService, RunningDaemon, Start
from odf_node.errors import UsageError
from odf_node.http.access_log import write_line
from odf_node.http.server import ListeningAddress
from odf_node.semaphore import FairSemaphore
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.peer_addresses import PeerAddress

_PRIVATE_FACTOR: Final = 20
"""In a private network all nodes behind one address are one bucket: they share twenty times as much.  # guess"""


@dataclass
class _Auditors:
    """Whose every word is of interest: those that the policies name, as they are now."""

    policies: WatchedPolicies
    _keys: frozenset[DidKey] = frozenset()
    _stated: str = ""

    def list_keys(self) -> frozenset[DidKey]:
        """Return the keys; while the policies cannot be read, those of before, and the log says so once."""
        try:
            self._keys = frozenset(auditor.key for auditor in self.policies.read().auditors)
            self._stated = ""
        except OdfError as error:
            if str(error) != self._stated:  # who pulls will be told; the node is served all the same
                self._stated = str(error)
                write_line("gossip-policies", text=self._stated)
        return self._keys


@dataclass
class GossipTasks:
    """Gossip of one daemon: made before the server listens, started when it is known where."""

    node: Node
    section: Section
    public_url: str | None
    gossip: Gossip
    stop: asyncio.Event
    tasks: list[asyncio.Task[None]]

    def start(self, listening: ListeningAddress, verifications: FairSemaphore) -> None:
        """Begin; called on the event loop once requests are answered. What is brought is verified in its turn."""
        own = find_own_addresses(self.section, listening, self.public_url)
        loop = asyncio.get_running_loop()
        self.node.outgoing.heard_private = self.section.allow_private
        follower = Follower(
            self.node.store,
            lambda: self.node.taking,
            self.node.outgoing.open_peer,
            WatchedPolicies(self.node.home.folder.policies).read,
            write_line,
            partial(verifications.ask, "subscriptions"),
        )
        every_s = self.section.round_milliseconds / 1000
        self.tasks += [
            loop.create_task(self._guard(self.gossip.run(own, self.stop))),
            loop.create_task(self._guard(follower.run(self.gossip, every_s, self.stop))),
        ]
        write_line("gossiping", addresses=[str(address) for address in own])

    async def _guard(self, running: Awaitable[None]) -> None:
        """Log what ends a task that should not end; the node goes on serving."""
        try:
            await running
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of a background task
            write_line("gossip-fault", error=repr(error))


@asynccontextmanager
async def gossip_of(
    node: Node,
    section: Section,
    public_url: str | None,
    private_key: bytes,
    *,
    tells: Callable[[], bool],
) -> AsyncIterator[GossipTasks | None]:
    """Make the gossip of a daemon; None where the operator wants none.

    Args:
        node: Whose.
        section: The configuration.
        public_url: Where others reach this node, if the operator says so.
        private_key: The node's.
        tells: Whether everybody may know what the node publishes.

    Raises:
        UsageError: The configuration names an address that is none.
    """
    if public_url:
        _parse(public_url, "listen.public_url")  # before the first request is answered
    if not section.enabled:
        yield None
        return
    bootstrap = [_parse(text, "gossip.bootstrap") for text in (section.bootstrap or "").split()]
    settings = GossipSettings(round_ms=section.round_milliseconds)
    if section.allow_private:
        settings = replace(
            settings,
            rate_requests_per_s=settings.rate_requests_per_s * _PRIVATE_FACTOR,
            rate_burst_requests=settings.rate_burst_requests * _PRIVATE_FACTOR,
            rate_items_per_s=settings.rate_items_per_s * _PRIVATE_FACTOR,
            rate_burst_items=settings.rate_burst_items * _PRIVATE_FACTOR,
        )
    signers = _Auditors(WatchedPolicies(node.home.folder.policies)).list_keys
    reader = HomeReader(node.store, tuple(bootstrap), signers, tells, node.store.read_change)
    async with GossipClient(allow_private=section.allow_private) as transport:
        gossip = Gossip(
            reader,
            node.store,
            private_key,
            node.clock,
            transport,
            settings=settings,
            allow_private=section.allow_private,
            sinks=(Hearsay(node.store, node.clock),),
            log=write_line,
        )
        running = GossipTasks(node, section, public_url, gossip, asyncio.Event(), [])
        try:
            yield running
        finally:
            running.stop.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(5.0):
                    await asyncio.gather(*running.tasks, return_exceptions=True)
            for task in running.tasks:
                task.cancel()
            await asyncio.gather(*running.tasks, return_exceptions=True)


@asynccontextmanager
async def _gossip_beside(daemon: RunningDaemon) -> AsyncIterator[Start]:
    node, settings = daemon.node, daemon.live.configuration
    key = await asyncio.to_thread(node.keys.get_or_create_node_key)
    async with gossip_of(
        node,
        settings.gossip,
        settings.listen.public_url,
        key.seed,
        tells=lambda: daemon.live.configuration.access.anonymous,
    ) as gossiping:

        def start(listening: ListeningAddress, app: web.Application) -> None:
            if gossiping is not None:
                app[ANSWERING].receiver = gossiping.gossip
                gossiping.start(listening, daemon.verifications)

        yield start


SERVICE: Final = BackgroundService(_gossip_beside)
"""Found by its entry point in the group ``odf_node.background``."""


def find_own_addresses(
    section: Section, listening: ListeningAddress, public_url: str | None = None
) -> tuple[PeerAddress, ...]:
    """Say under which addresses this node tells others to reach it (GOSSIP-53).

    Raises:
        UsageError: The configured one is no address.
    """
    if public_url:
        return (_parse(public_url, "listen.public_url"),)
    with suppress(MalformedError):
        address = PeerAddress.parse(listening.url)
        if address.is_public or (section.allow_private and address.host not in {"0.0.0.0", "::"}):  # noqa: S104
            return (address,)
    return ()


def _parse(text: str, setting: str) -> PeerAddress:
    try:
        return PeerAddress.parse(text.rstrip("/"))
    except MalformedError as error:
        raise UsageError(f"{setting}: {text} is no address; write it as http(s)://host:port") from error
