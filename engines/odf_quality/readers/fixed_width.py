"""Lines whose columns stand at fixed places.

Source: clause READ-4 in ``spec/plug-ins/quality.md``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from odf_engines.readers.contract import BrokenFileError, BrokenRecordError, ParameterError, RawRecord, Reader

_PLACE: Final = re.compile(r"([1-9][0-9]{0,6})-([1-9][0-9]{0,6})", re.ASCII)
_MAX_LINE_BYTES: Final = 16 * 1024 * 1024  # as a record of CSV (ING-2)


class FixedWidth(Reader):
    """Takes columns out of lines by the places of their characters."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``: places by column, from 1, both included: ``1-10``; ``skip``: lines at the top to leave out."""

        columns: dict[str, str]
        skip: int = 0

    def __init__(self, parameters: Any, names: tuple[str, ...]) -> None:
        super().__init__(parameters, names)
        if parameters.skip < 0:
            raise ParameterError("skip", expected="0 or more lines", found=str(parameters.skip))
        self._places = {}
        for name, text in parameters.columns.items():
            if name not in names:
                raise ParameterError("columns", expected=f"columns of the read step ({', '.join(names)})", found=name,
                                     known=names)  # fmt: skip
            match = _PLACE.fullmatch(text)
            if match is None or int(match[1]) > int(match[2]):
                raise ParameterError("columns", expected="places such as 1-10", found=f"{name}: {text}")
            self._places[name] = slice(int(match[1]) - 1, int(match[2]))
        if missing := [name for name in names if name not in self._places]:
            raise ParameterError("columns", expected=f"a place for {', '.join(missing)}", found="none")
        self._least = max(place.start for place in self._places.values()) + 1

    def iter_records(self, file: BinaryIO) -> Iterator[RawRecord]:
        number = 0
        while line := file.readline(_MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > _MAX_LINE_BYTES:
                raise BrokenFileError(f"line {number} is longer than {_MAX_LINE_BYTES} bytes")
            raw = line.rstrip(b"\r\n")
            if number > self.parameters.skip and raw.strip():
                yield RawRecord(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, number)

    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise BrokenRecordError("the record is not valid UTF-8") from error
        if len(text) < self._least:
            raise BrokenRecordError(f"expected at least {self._least} characters, found {len(text)}")
        return {name: text[place].strip() or None for name, place in self._places.items()}
