"""Putting one layer on those below it: what it hides, then what it brings.

``.wh.NAME`` hides ``NAME`` of the layers below; ``.wh..wh..opq`` hides all that its folder has there. Neither hides
what the same layer brings, wherever in it that stands, so the marks of a layer are looked at first.

Source: clause ADDED-14 in ``spec/extensions/added-engines.md``; OCI image-spec 1.1, "Representing Changes".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_engines.archive.root_tree import FileNode, FolderNode, LinkNode, RootTree, check_link_target, split_path
from odf_engines.archive.tar_entries import EntryKind, TarEntry
from odf_protocol.errors import MalformedError

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
        check_link_target(names, entry.target)
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
