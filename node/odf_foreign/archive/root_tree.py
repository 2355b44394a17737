"""The root folder that an archive stands for, before any of it is written.

Paths of an archive are taken apart into names, and links are followed within this tree alone, where the top is the top:
nothing outside of it has a name. What would lead out is rejected all the same, since no honest archive has it.

A layer is put on those below it: what it hides, then what it brings. ``.wh.NAME`` hides ``NAME`` of the layers below;
``.wh..wh..opq`` hides all that its folder has there. Neither hides what the same layer brings, wherever in it that
stands, so the marks of a layer are looked at first.

Source: clauses ADDED-12 to ADDED-14 in ``spec/plug-ins/foreign.md``; OCI image-spec 1.1, "Representing
Changes".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from odf_foreign.archive.tar_entries import EntryKind, TarEntry
from odf_protocol.errors import MalformedError

MAX_DEPTH: Final = 64  # guess: packages of Node.js nest some thirty deep
_MAX_NAME_BYTES: Final = 255  # NAME_MAX of Linux
_MAX_HOPS: Final = 40  # as Linux follows links: path_resolution(7)
_MAX_STEPS: Final = 50_000_000  # guess: of all entries, which are half a million; paths have ten names, and few links
_MAX_MADE: Final = 500_000  # guess: as many as entries; honest archives name almost all of their folders


@dataclass(frozen=True, slots=True)
class FileNode:
    """A file: which entry of which layer has its bytes, how many, and whether it may be run."""

    layer: int
    entry: int
    size_bytes: int
    can_run: bool


@dataclass(frozen=True, slots=True)
class LinkNode:
    """A symbolic link, with its target as the archive has it."""

    target: str


@dataclass(slots=True)
class FolderNode:
    """A folder."""

    children: dict[str, Node] = field(default_factory=dict)


Node = FileNode | LinkNode | FolderNode


class RootTree:
    """A root folder that layers are put into, one after the other."""

    def __init__(self) -> None:
        self.top = FolderNode()
        self._steps_left = _MAX_STEPS
        self._made_left = _MAX_MADE

    def find(self, names: tuple[str, ...]) -> Node | None:
        """Return what is at a place, links on the way there followed."""
        parent = self._find_folder(names[:-1]) if names else None
        return self.top if not names else None if parent is None else parent.children.get(names[-1])

    def put(self, names: tuple[str, ...], node: Node) -> None:
        """Put something at a place, instead of what is there; a folder keeps what it has.

        Raises:
            MalformedError: The place is the top, or below a file, or too deep.
        """
        if not names:
            if isinstance(node, FolderNode):
                return
            raise _wrong("/", "a folder", "something else at the top")
        parent = self._make_folder(names[:-1])
        before = parent.children.get(names[-1])
        if not (isinstance(node, FolderNode) and isinstance(before, FolderNode)):
            parent.children[names[-1]] = node

    def hide(self, names: tuple[str, ...]) -> None:
        """Take away what is at a place, with all below it; nothing where there is nothing."""
        parent = self._find_folder(names[:-1])
        if parent is not None:
            parent.children.pop(names[-1], None)

    def hide_all_in(self, names: tuple[str, ...]) -> None:
        """Take away everything that is in a folder."""
        folder = self._find_folder(names)
        if folder is not None:
            folder.children.clear()

    def walk(self) -> Iterator[tuple[tuple[str, ...], Node]]:
        """Yield every place and what is there, folders before what they have."""
        waiting: list[tuple[tuple[str, ...], FolderNode]] = [((), self.top)]
        while waiting:
            above, folder = waiting.pop()
            for name, node in folder.children.items():
                place = (*above, name)
                yield place, node
                if isinstance(node, FolderNode):
                    waiting.append((place, node))

    def _find_folder(self, names: tuple[str, ...]) -> FolderNode | None:
        return self._follow(names, makes=False)

    def _make_folder(self, names: tuple[str, ...]) -> FolderNode:
        folder = self._follow(names, makes=True)
        assert folder is not None
        return folder

    def _follow(self, names: tuple[str, ...], *, makes: bool) -> FolderNode | None:
        """Go to a folder, through links to folders; with ``makes``, make what is missing on the way."""
        left, hops = list(reversed(names)), 0
        way: list[FolderNode] = [self.top]
        while left:
            name = left.pop()
            self._steps_left -= 1
            if self._steps_left < 0:
                raise _wrong("/".join(names), f"at most {_MAX_STEPS} names on the ways to all entries", "more")
            if name == "..":
                way = way[: max(1, len(way) - 1)]
                continue
            node = way[-1].children.get(name)
            if isinstance(node, LinkNode):
                hops += 1
                if hops > _MAX_HOPS:
                    raise _wrong("/".join(names), f"at most {_MAX_HOPS} links", "more, or a circle")
                if node.target.startswith("/"):
                    way = way[:1]
                left += [part for part in reversed(node.target.split("/")) if part not in {"", "."}]
                continue
            if node is None and makes:
                self._made_left -= 1
                if self._made_left < 0:
                    raise _wrong("/".join(names), f"at most {_MAX_MADE} folders that no entry names", "more")
                node = way[-1].children[name] = FolderNode()
            if not isinstance(node, FolderNode):
                if makes:
                    raise _wrong("/".join(names), "a folder", f"a file at {name}")
                return None
            way.append(node)
            if len(way) > MAX_DEPTH:
                raise _wrong("/".join(names), f"at most {MAX_DEPTH} folders inside each other", "more")
        return way[-1]


def split_path(path: str) -> tuple[str, ...]:
    """Take a path of an archive apart; the top is no name at all.

    Raises:
        MalformedError: It leads out of the root, or is no path.
    """
    if path.startswith("/"):
        raise _wrong(path, "a path inside the root", "an absolute one")
    if "\0" in path:
        raise _wrong(path, "a path without U+0000", "one with it")
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if ".." in names:
        raise _wrong(path, "a path inside the root", "one with '..'")
    if len(names) > MAX_DEPTH:
        raise _wrong(path, f"at most {MAX_DEPTH} folders inside each other", len(names))
    if any(len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES for name in names):
        raise _wrong(path, f"names of at most {_MAX_NAME_BYTES} bytes", "a longer one")
    return names


def check_link_target(names: tuple[str, ...], target: str) -> None:
    """Check that a symbolic link does not climb above the top; an absolute one starts there.

    Args:
        names: Where it comes to stand, which its entry does not say: links lead elsewhere, hard links take it along.
        target: Where it leads.

    Raises:
        MalformedError: It does, or it is no path.
    """
    place = "/".join(names)
    if not target or "\0" in target:
        raise _wrong(place, "a link to a path", repr(target[:80]))
    depth = 0 if target.startswith("/") else len(names) - 1
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in {"", "."}
        if depth < 0:
            raise _wrong(place, "a link that stays inside the root", f"one to {target}")


def _wrong(place: str, expected: object, found: object) -> MalformedError:
    return MalformedError("archive", where=f"'{place[:200]}'", expected=expected, found=found)


_HIDDEN: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"


@dataclass(frozen=True, slots=True)
class _Placed:
    names: tuple[str, ...]
    number: int
    entry: TarEntry


def put_layer(tree: RootTree, entries: Sequence[TarEntry], layer: int, *, has_marks: bool) -> None:
    """Put a layer into a tree.

    Args:
        tree: Has the layers below.
        entries: Of the layer, in its order.
        layer: Its number, for whoever reads the bytes later.
        has_marks: Whether names can hide what is below, as in images.

    Raises:
        MalformedError: A path or link leads out of the root, or a hard link leads to no file.
    """
    placed = [_Placed(split_path(entry.path), number, entry) for number, entry in enumerate(entries)]
    brought = placed
    if has_marks:
        brought = [each for each in placed if not (each.names and each.names[-1].startswith(_HIDDEN))]
        for each in placed:
            if each.names and each.names[-1].startswith(_HIDDEN):
                _hide(tree, each.names)
    for each in brought:
        _put(tree, each, layer)


def _hide(tree: RootTree, names: tuple[str, ...]) -> None:
    if names[-1] == _OPAQUE:
        tree.hide_all_in(names[:-1])
        return
    name = names[-1].removeprefix(_HIDDEN)
    if name in {"", ".", ".."}:
        where = "/".join(names)
        raise MalformedError("archive", where=f"'{where}'", expected="a name that is hidden", found="none")
    tree.hide((*names[:-1], name))


def _put(tree: RootTree, placed: _Placed, layer: int) -> None:
    names, entry = placed.names, placed.entry
    if entry.kind is EntryKind.FOLDER:
        tree.put(names, FolderNode())
    elif entry.kind is EntryKind.LINK:
        tree.put(names, LinkNode(entry.target))
    elif entry.kind is EntryKind.FILE:
        tree.put(names, FileNode(layer, placed.number, entry.size_bytes, entry.can_run))
    else:
        linked = tree.find(split_path(entry.target))
        if linked is None or isinstance(linked, FolderNode):
            where = "/".join(names)
            raise MalformedError(
                "archive", where=f"'{where}'", expected="a hard link to a file of it", found=entry.target
            )
        tree.put(names, linked)
