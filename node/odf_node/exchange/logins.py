"""Tokens of other servers: who this node's user is there."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.records.access import LoginStore

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8000}")
"""What can stand in a header behind ``Bearer``."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Logins:
    """The use case behind ``odf-node login`` and ``logout``."""

    store: LoginStore
    validate: Callable[[str, str], Awaitable[bool]]
    ask: Callable[[str, str, str], Awaitable[str]]

    async def log_in(self, server: str, token: str) -> bool:
        """Keep a token, unless the server says that it is not good.

        Returns:
            Whether the server says that it is good; some cannot say it.

        Raises:
            UsageError: No address of a server, or no token.
            PeerForbidsError: The server does not take it; nothing was kept.
            PeerUnavailableError: It does not answer.
        """
        origin = parse_origin(server)
        if not _TOKEN.fullmatch(token):
            raise UsageError("that is no access token: expected one word of letters, digits and signs")
        known = await self.validate(origin, token)
        self.store.put(origin, token)
        return known

    async def log_in_as(self, server: str, user: str, password: str) -> None:
        """Get a token for a password, and keep it; errors as ``log_in``."""
        origin = parse_origin(server)
        await self.log_in(server, await self.ask(origin, user, password))

    async def check(self, server: str) -> bool:
        """Ask the server whether the token that is kept is still good; see ``log_in``.

        Raises:
            UnknownDatasetError: None is kept.
        """
        origin = parse_origin(server)
        token = self.store.find(origin)
        if token is None:
            raise UnknownDatasetError(f"not logged in at {origin}; 'odf-node login {origin}' does it")
        return await self.validate(origin, token)

    def log_out(self, server: str) -> None:
        """Forget the token.

        Raises:
            UnknownDatasetError: None is kept.
        """
        origin = parse_origin(server)
        if not self.store.drop(origin):
            raise UnknownDatasetError(f"not logged in at {origin}")

    def log_out_everywhere(self) -> list[str]:
        """Forget all tokens; return where."""
        origins = list(self.store.read())
        return [origin for origin in origins if self.store.drop(origin)]

    def list_origins(self) -> list[str]:
        """Say where tokens are kept for."""
        return sorted(self.store.read())

    def find_token(self, url: str) -> str | None:
        """Return the token for the server of a dataset's address, None where there is none."""
        try:
            return self.store.find(parse_origin(url))
        except UsageError:
            return None


def is_server(address: str) -> bool:
    """Say whether an address is one of a server to which tokens are shown, and not of files."""
    return address.removeprefix("odf+").partition("://")[0] in _DEFAULT_PORTS


def parse_origin(server: str) -> str:
    """Read the address of a server, or of something there, as users write it: ``http(s)://`` or ``odf+http(s)://``.

    Raises:
        UsageError: It is none.
    """
    try:
        parts = urlsplit(server.removeprefix("odf+"))
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if "@" in parts.netloc:
        # Said without the words themselves, which would be a password in a log.
        raise UsageError("a server's address has no user and password in it; 'odf-node login' keeps a token for it")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise UsageError(f"{server} is no server's address; write it as https://host or http://host:port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = "" if port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{port}"
    return f"{parts.scheme}://{host}{shown}"
