"""Elements of an XML document as rows.

Expat tells where each begins and ends; entities and document types are rejected, as they can stand for anything.

Source: clause READ-4 in ``spec/plug-ins/quality.md``.
"""

import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final
from xml.parsers import expat

from odf_engines.readers.contract import BrokenFileError, BrokenRecordError, ParameterError, RawRecord, Reader

_MAX_DEPTH: Final = 100  # guess: deeper than documents of rows are
_TAG: Final = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_CHUNK_BYTES: Final = 64 * 1024


class _ForbiddenError(Exception):
    """A document has what is not read."""


class XmlRows(Reader):
    """Takes rows out of an XML document: one kind of element is a row, and what is in it the columns."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """What a row is, and where its columns are.

        ``row``: the path of elements from the root to a row, ``catalog/item``; ``columns``: places within the row by
        column, elements and at last perhaps an attribute, ``price``, ``@id``, ``seller/@name``; a column that is not
        named is the element of its name.
        """

        row: str
        columns: dict[str, str] = field(default_factory=dict)

    def __init__(self, parameters: Any, names: tuple[str, ...]) -> None:
        super().__init__(parameters, names)
        self._row = tuple(parameters.row.split("/"))
        if not all(self._row):
            raise ParameterError("row", expected="names of elements joined by /", found=repr(parameters.row))
        places = parameters.columns
        for name in places:
            if name not in names:
                raise ParameterError("columns", expected=f"columns of the read step ({', '.join(names)})", found=name,
                                     known=names)  # fmt: skip
        self._places = {places.get(name, name): name for name in names}
        if len(self._places) != len(names):
            raise ParameterError("columns", expected="another place for each column", found=str(places))

    def iter_records(self, file: BinaryIO) -> Iterator[RawRecord]:
        document, parser = _mapped(file), _parser()
        open_elements: list[str] = []
        found: list[tuple[int, int, int]] = []
        begun: list[tuple[int, int]] = []

        def begin(name: str, _attributes: dict[str, str]) -> None:
            open_elements.append(name)
            if len(open_elements) > _MAX_DEPTH:
                raise _ForbiddenError(f"elements are nested deeper than {_MAX_DEPTH}")
            if tuple(open_elements) == self._row:
                begun.append((parser.CurrentByteIndex, parser.CurrentLineNumber))

        def end(_name: str) -> None:
            if tuple(open_elements) == self._row:
                start, line = begun.pop()
                found.append((start, _end_of(document, start, parser.CurrentByteIndex), line))
            open_elements.pop()

        parser.StartElementHandler, parser.EndElementHandler = begin, end
        for place in (*range(0, len(document), _CHUNK_BYTES), None):
            part = b"" if place is None else document[place : place + _CHUNK_BYTES]
            _feed(parser, part, is_last=place is None)
            for start, stop, line in found:
                yield RawRecord(bytes(document[start:stop]), line)
            found.clear()

    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        parser = _parser()
        path: list[str] = []
        texts: dict[str, list[str]] = {}

        def begin(name: str, attributes: dict[str, str]) -> None:
            path.append(name)
            here = "/".join(path[1:])
            for attribute, value in attributes.items():
                texts[f"{here}/@{attribute}".removeprefix("/")] = [value]
            if here in texts and here in self._places:
                raise BrokenRecordError(f"the element {here} is there twice")
            texts[here] = []

        def end(_name: str) -> None:
            path.pop()

        def add(text: str) -> None:
            texts["/".join(path[1:])].append(text)

        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, add
        try:
            parser.Parse(raw, True)
        except expat.ExpatError as error:
            raise BrokenRecordError(f"not XML: {error}") from error
        return {name: "".join(texts.get(place, [])).strip() or None for place, name in self._places.items()}


def _end_of(document: "mmap.mmap | bytes", start: int, end_place: int) -> int:
    """Return where an element ends that begins at ``start``: an empty one with its only tag."""
    only = _TAG.match(document, start)
    if only is None or only[0].endswith(b"/>"):
        return start if only is None else only.end()
    return document.find(b">", end_place) + 1


def _mapped(file: BinaryIO) -> "mmap.mmap | bytes":
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # it is empty
        return b""


def _parser() -> expat.XMLParserType:
    # Read as UTF-8 whatever it says: the node has converted it where the read step names another encoding (ING-21).
    parser = expat.ParserCreate("utf-8")

    def reject(*_arguments: object) -> None:
        raise _ForbiddenError("it has a document type, which could define entities; remove it")

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reject
    return parser


def _feed(parser: expat.XMLParserType, data: bytes, *, is_last: bool) -> None:
    try:
        parser.Parse(data, is_last)
    except _ForbiddenError as error:
        raise BrokenFileError(str(error)) from error
    except expat.ExpatError as error:
        hint = "; a file that is not in UTF-8 needs the encoding of its read step" if error.code == 4 else ""
        raise BrokenFileError(f"not XML: {error}{hint}") from error
