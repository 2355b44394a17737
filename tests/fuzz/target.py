"""One entrance for bytes of strangers, as the fuzzers drive it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from odf_protocol.errors import CorruptError

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """One entrance for bytes of strangers.

    Attributes:
        name: Also the folder of its regression files.
        attempt: Takes bytes; may raise ``declared`` errors.
        declared: What callers are told to expect.
        seeds: Valid inputs.
    """

    name: str
    attempt: Callable[[bytes], None]
    declared: tuple[type[Exception], ...]
    seeds: Callable[[], Sequence[bytes]]

    def run(self, data: bytes) -> None:
        """Try ``data``; anything that is raised is a finding."""
        try:
            self.attempt(data)
        except self.declared as error:
            text = str(error)
            if isinstance(error, CorruptError):
                return  # our own storage: nobody else chose these bytes
            assert text.isprintable(), f"message with control characters: {text!r}"
            assert len(text) < 2_000, f"message of {len(text)} characters"
