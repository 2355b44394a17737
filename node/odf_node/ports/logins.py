"""Access tokens that other servers gave to this node's user."""

from collections.abc import Mapping
from typing import Protocol


class LoginStore(Protocol):
    """Tokens by the origin of a server (``https://host:port``); a token goes to its origin and nowhere else.

    Every method may raise HomeCorruptError, UnsafeKeyFileError and what writing to the home may raise.
    """

    def find(self, origin: str) -> str | None:
        """Return the token for a server, or None."""
        ...

    def read(self) -> Mapping[str, str]:
        """Return all tokens by origin."""
        ...

    def put(self, origin: str, token: str) -> None:
        """Keep a token instead of the one kept before."""
        ...

    def drop(self, origin: str) -> bool:
        """Forget the token of a server; say whether there was one."""
        ...
