"""Reading the fields of a contract file: each error names file, line, field and the nearest name.

Source: CONTRACT-2.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NoReturn

from odf_protocol.manifest.errors import ManifestError, find_nearest, list_words
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, describe


@dataclass(frozen=True, slots=True)
class ContractField:
    """A value of a contract file and where it stands; ``path`` is as messages name it."""

    source: str
    node: Node
    path: str

    @property
    def line(self) -> int:
        """From 1."""
        return self.node.line

    @property
    def is_null(self) -> bool:
        """Whether nothing is written there."""
        return isinstance(self.node, ScalarNode) and self.node.is_null

    def reject(self, expected: str, found: str | None = None, *, known: Collection[str] = ()) -> NoReturn:
        """Raise the error of this place; the nearest of the known words is offered.

        Raises:
            ManifestError: Always.
        """
        shown = describe(self.node) if found is None else found
        nearest = find_nearest(shown.strip("'"), known) if known else None
        place = self.source, self.node.line, self.node.column
        raise ManifestError(*place, path=self.path, expected=expected, found=shown, nearest=nearest)

    def entries(self, known: Collection[str] | None) -> dict[str, "ContractField"]:
        """Read a map, without what is null.

        Args:
            known: The names that may stand there; None: any.

        Raises:
            ManifestError: It is none, or has another name.
        """
        if not isinstance(self.node, MapNode):
            self.reject("a map")
        found: dict[str, ContractField] = {}
        for key, value in self.node.entries:
            each = ContractField(self.source, value, f"{self.path}.{key.text}".removeprefix("."))
            if known is not None and key.text not in known:
                at_key = ContractField(self.source, key, each.path)
                at_key.reject(f"one of {list_words(known)}", key.text, known=known)
            if not each.is_null:
                found[key.text] = each
        return found

    def items(self) -> Iterator["ContractField"]:
        """Yield the items of a list.

        Raises:
            ManifestError: It is none.
        """
        if not isinstance(self.node, ListNode):
            self.reject("a list")
        for number, value in enumerate(self.node.items):
            yield ContractField(self.source, value, f"{self.path}[{number}]")

    def text(self, known: Collection[str] = ()) -> str:
        """Read a text, of the known ones where some are given.

        Raises:
            ManifestError: It is none, or another one.
        """
        if not isinstance(self.node, ScalarNode) or self.node.is_null:
            self.reject("a text")
        if known and self.node.text not in known:
            self.reject(f"one of {list_words(known)}", self.node.text, known=known)
        return self.node.text

    def flag(self) -> bool:
        """Read true or false.

        Raises:
            ManifestError: It is neither.
        """
        return self.text(("true", "false")) == "true"

    def number(self) -> float:
        """Read a finite number.

        Raises:
            ManifestError: It is none.
        """
        try:
            found = float(self.text()) if isinstance(self.node, ScalarNode) else math.nan
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.reject("a number")
        return found
