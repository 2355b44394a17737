"""How an XML document is to be read: which elements are its rows, and where their columns are.

Source: clause READ-4 in ``spec/plug-ins/quality.md``; ING-24 in ``spec/plug-ins/drafts.md``.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, Final
from xml.parsers import expat

from odf_engines.readers.contract import BrokenFileError
from odf_engines.sampling.plans import ReadPlan, texts_of
from odf_quality.readers.xml_rows import XmlRows

_MAX_DEPTH: Final = 100  # as the reader has it
_MAX_PLACES: Final = 10_000  # guess: a document of rows has some dozens
_MAX_PLACE_CHARACTERS: Final = 1_000_000  # of all of them; guess
_CHUNK_BYTES: Final = 64 * 1024

Path = tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    """What stands at a path of elements."""

    count: int = 0
    is_parent: bool = False
    has_text: bool = False
    attributes: set[str] = field(default_factory=set)
    max_in_parent: int = 0


def plan_elements(file: BinaryIO) -> ReadPlan:
    """Choose the elements that repeat, and have columns.

    Raises:
        BrokenFileError: It is no document of rows, or one with a document type.
    """
    seen = _look(file)
    rows = [
        path
        for path, found in seen.items()
        if found.count > 1
        and (found.is_parent or found.attributes)
        and all(seen[path[:depth]].count == 1 for depth in range(1, len(path)))
    ]
    if not rows:
        raise BrokenFileError("no element repeats below one that does not, and has elements or attributes of its own")
    row = max(rows, key=lambda path: seen[path].count)
    doubts = []
    if len(rows) > 1:
        others = ", ".join("/".join(path) for path in rows if path != row)[:300]
        doubts.append(f"rows are the elements {'/'.join(row)}; these repeat as well: {others}")
    places, lost = [], []
    for path, found in seen.items():
        if path[: len(row)] != row:
            continue
        below = path[len(row) :]
        if any(seen[path[:depth]].max_in_parent > 1 for depth in range(len(row) + 1, len(path) + 1)):
            lost.append("/".join(below))
            continue
        if below and (found.has_text or not (found.is_parent or found.attributes)):
            places.append("/".join(below))
        places += ["/".join((*below, f"@{name}")) for name in sorted(found.attributes)]
    if lost:
        doubts.append(f"elements that are in one row several times are left out: {', '.join(lost)[:300]}")
    if not places:
        raise BrokenFileError(f"the elements {'/'.join(row)} have nothing that is in each of them once at most")
    names = _names_of(places)
    parameters = {"row": "/".join(row), "columns": {name: at for name, at in names.items() if name != at}}
    if not parameters["columns"]:
        del parameters["columns"]
    reader = XmlRows(XmlRows.Parameters(**parameters), tuple(names))  # type: ignore[arg-type]
    return ReadPlan(
        names=tuple(names), iter_texts=partial(texts_of, reader), parameters=parameters, doubts=tuple(doubts)
    )


def _look(file: BinaryIO) -> dict[Path, _Seen]:
    """Count what stands where, up to where the document ends or is cut off."""
    seen: dict[Path, _Seen] = {}
    path: list[str] = []
    children: list[Counter[str]] = [Counter()]
    size = 0
    parser = expat.ParserCreate("utf-8")

    def reject(*_arguments: object) -> None:
        raise BrokenFileError("it has a document type, which could define entities; remove it")

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal size
        if path:
            seen[tuple(path)].is_parent = True
        path.append(name)
        here = tuple(path)
        if here not in seen:
            seen[here] = _Seen()
            size += sum(map(len, here))
        found = seen[here]
        found.count += 1
        size += sum(map(len, attributes.keys() - found.attributes))
        found.attributes.update(attributes)
        children[-1][name] += 1
        found.max_in_parent = max(found.max_in_parent, children[-1][name])
        children.append(Counter())
        if len(path) > _MAX_DEPTH or len(seen) > _MAX_PLACES or size > _MAX_PLACE_CHARACTERS:
            raise BrokenFileError("it has elements of too many kinds, or nested too deeply, to be rows")

    def end(_name: str) -> None:
        path.pop()
        children.pop()

    def add(text: str) -> None:
        if not text.isspace():
            seen[tuple(path)].has_text = True

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reject
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, add
    try:
        while chunk := file.read(_CHUNK_BYTES):
            parser.Parse(chunk, False)
    except expat.ExpatError as error:
        raise BrokenFileError(f"not XML: {error}") from error
    return seen


def _names_of(places: Iterable[str]) -> dict[str, str]:
    """Give each place a name that no other has: its last part where that is its own."""
    names: dict[str, str] = {}
    for place in places:
        parts = [re.sub(r"[^\w.-]+", "_", part.removeprefix("@").rpartition(":")[2]) for part in place.split("/")]
        tries = ["_".join(parts[-depth:]) for depth in range(1, len(parts) + 1)]
        name = next((each for each in tries if each not in names), None)
        number = 2
        while name is None or name in names:
            name, number = f"{tries[-1]}_{number}", number + 1
        names[name] = place
    return names
