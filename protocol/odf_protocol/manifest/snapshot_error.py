"""The error of the snapshot rules, and the place in a snapshot where it happens."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from odf_protocol.errors import OdfError, RejectedError

Step = str | int


class SnapshotError(RejectedError):
    """A snapshot is well-formed and breaks a rule.

    Attributes:
        path: Steps from the snapshot to the fault, as manifests spell them: ``("metadata", 2, "read")``.
        known: Words that the author may have meant.
    """

    def __init__(self, path: tuple[Step, ...], *, expected: str, found: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"snapshot rules at {'.'.join(map(str, path)) or 'the event'}", expected=expected, found=found)
        self.path = path
        self.known = tuple(known)
        self.expected: str = expected
        self.found: str = found


@dataclass(frozen=True, slots=True)
class At:
    """A place in the snapshot."""

    path: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> "At":
        return At((*self.path, step))

    def reject(self, expected: str, found: str, known: Iterable[str] = ()) -> NoReturn:
        """Raise the error of this place; the nearest of the known words is offered."""
        raise SnapshotError(self.path, expected=expected, found=found, known=known)

    def check(self, what: str, check: Callable[[str], object], value: str) -> None:
        """Run a check of another module; its error becomes one of this place."""
        try:
            check(value)
        except OdfError as error:
            raise SnapshotError(self.path, expected=what, found=f"{value!r} ({error})") from error
