"""Where in a manifest a reader is, so that its errors can say so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.nodes import Node

#: Field path as a linked list, newest step first, so that extending one costs a tuple; None is the document's root.
Path = tuple["Path", str | int] | None


@dataclass(frozen=True, slots=True)
class Place:
    """A manifest being read.

    Attributes:
        source_name: For messages: a file's name.
        rewrite_text: Applied to every text value as it is read; None leaves texts as written.
    """

    source_name: str
    rewrite_text: Callable[[str], str] | None = None

    def fail(self, node: Node, path: Path, expected: str, found: str, nearest: str | None = None) -> NoReturn:
        """Raise the error of a node."""
        raise ManifestError(
            self.source_name,
            node.line,
            node.column,
            path=format_path(path),
            expected=expected,
            found=found,
            nearest=nearest,
        )


#: Turns a node into a value, or fails at its place. The value's type is known to the declaration only.
Reader = Callable[[Node, Path, Place], object]


def format_path(path: Path) -> str:
    """Write a path as ``content.metadata[2].read.kind``."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")
