"""Which of the files that match a pattern are next: one after the other, in the order of their names (ING-19)."""

from itertools import pairwise
from pathlib import PurePath
from typing import TypeVar

from odf_protocol.errors import MalformedError

AnyPath = TypeVar("AnyPath", bound=PurePath)


def list_newer(matches: list[AnyPath], last_name: str | None, pattern: str) -> list[AnyPath]:
    """List the files whose names follow the last one, in their order.

    Raises:
        MalformedError: Names that a state cannot hold, or cannot tell apart: one of them would never be taken.
    """
    paths = sorted(matches, key=lambda path: path.name)
    for path in paths:
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise MalformedError("files source", where=pattern, expected="names in UTF-8", found=path) from error
    for path, following in pairwise(paths):
        if path.name == following.name:
            found = f"{path} and {following}"
            raise MalformedError("files source", where=pattern, expected="files of different names", found=found)
    return [path for path in paths if last_name is None or path.name > last_name]


def advise_on_pattern(name: str) -> str:
    """Say where a pattern would be one, of a name that looks like one and leads to nothing."""
    if "*" not in name:
        return ""
    return "; files by a pattern are for 'fetch: {kind: FilesGlob, path: ...}', of which 'new --from' looks at one file"
