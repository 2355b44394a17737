"""Names of hosts found in the very connection that uses them, so that what was judged is what is connected to.

A literal address never gets to a resolver: whoever lets a stranger name one asks ``is_public_host`` first.

Source: clauses EX-13 and GOSSIP-9, ING-22 in ``spec/ingest.md``, SMART-11 in ``spec/plug-ins/smart-transfer.md``.
"""

import socket
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from odf_protocol.public_addresses import is_public_ip


class _JudgingResolver(AbstractResolver):
    """Judges what the system's finds."""

    def __init__(self, system: AbstractResolver | None = None) -> None:
        """Make it; ``system`` asks the name servers, None: as the machine does."""
        self._system = system or DefaultResolver()

    async def close(self) -> None:
        """Release the system's."""
        await self._system.close()


class SteadyResolver(_JudgingResolver):
    """Finds hosts that this node's user named: one that led into the public internet once does so from then on.

    Its name server could otherwise send what comes later, which the server there has a say in, into this network.
    """

    def __init__(self, system: AbstractResolver | None = None) -> None:
        super().__init__(system)
        self._public_hosts: set[str] = set()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name.

        Raises:
            OSError: It resolves to nothing, or no longer to anything public.
        """
        found = await self._system.resolve(host, port, family)
        public = _choose_public(found)
        if host not in self._public_hosts:
            if public:
                self._public_hosts.add(host)
            return found
        if not public:
            raise OSError(None, f"{host} was in the public internet and leads into a private network now")
        return public


class OneWayResolver(_JudgingResolver):
    """Finds the hosts on one way of redirects: once it was in the public internet, it leads nowhere else (ING-22)."""

    def __init__(self, system: AbstractResolver | None = None) -> None:
        super().__init__(system)
        self.was_public = False
        """Whether the way was in the public internet; whoever goes to a literal address notes it here."""
        self.rejected_host: str | None = None
        """A host that would have led out of it."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name.

        Raises:
            OSError: It resolves to nothing, or to nothing where the way may lead.
        """
        found = await self._system.resolve(host, port, family)
        public = _choose_public(found)
        if self.was_public and not public:
            self.rejected_host = host
            raise OSError(None, f"{host} leads into a private network")
        chosen = public if self.was_public else found
        self.was_public = self.was_public or bool(public)
        return chosen


class PublicResolver(_JudgingResolver):
    """Resolves names that strangers say to public addresses only."""

    def __init__(
        self,
        named_host: str | None = None,
        named: AbstractResolver | None = None,
        system: AbstractResolver | None = None,
    ) -> None:
        """Make it.

        Args:
            named_host: A host that this node's user named, and that may be anywhere.
            named: Finds that host: the one that found it before.
            system: Asks the name servers; None: as the machine does.
        """
        super().__init__(system)
        self._named_host = named_host
        self._named = named or SteadyResolver(self._system)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name.

        Raises:
            OSError: It resolves to nothing, or to nothing public.
        """
        if host == self._named_host:
            return await self._named.resolve(host, port, family)
        public = _choose_public(await self._system.resolve(host, port, family))
        if not public:
            raise OSError(None, f"{host} is not in the public internet")
        return public


def _choose_public(found: list[ResolveResult]) -> list[ResolveResult]:
    return [entry for entry in found if is_public_ip(ip_address(entry["host"].partition("%")[0]))]
