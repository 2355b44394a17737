"""A check: something to try, and what must come of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError

__all__ = ["Check", "Checks", "VectorFailedError", "expect", "expect_rejection"]

_REJECTIONS: dict[str, type[OdfError]] = {
    "malformed": MalformedError,
    "unsupported": UnsupportedError,
    "rejected": RejectedError,
}


class VectorFailedError(Exception):
    """The implementation gave another result than the vector states."""


@dataclass(frozen=True, slots=True)
class Check:
    """One vector: its comment, and a function that raises if the result is another."""

    comment: str
    run: Callable[[], None]

    def find_failure(self) -> str | None:
        """Run the check; return what went wrong, None if nothing did."""
        try:
            self.run()
        except (VectorFailedError, OdfError, ValueError, LookupError, TypeError) as error:
            return f"{type(error).__name__}: {error}"
        return None


Checks = Iterator[Check]


def expect(found: object, expected: object) -> None:
    """Compare a result with the one that a vector states."""
    if found != expected:
        raise VectorFailedError(f"expected {expected}, found {found}")


def expect_rejection(rejection: str, attempt: Callable[[], Any], *, clause: str | None = None) -> None:
    """Expect an error of the kind that a vector states, and for a broken rule its clause."""
    try:
        found = attempt()
    except _REJECTIONS[rejection] as error:
        if clause is not None and isinstance(error, RejectedError):
            expect(error.rule.split()[0], clause)
        return
    raise VectorFailedError(f"expected it to be rejected as {rejection}, found {str(found)[:200]}")
