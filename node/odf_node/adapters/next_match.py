"""Which of the files that match a pattern is next: one after the other, in the order of their names (ING-19)."""

from itertools import pairwise
from pathlib import PurePath
from typing import TypeVar

from odf_protocol.errors import MalformedError

AnyPath = TypeVar("AnyPath", bound=PurePath)


def choose_next(matches: list[AnyPath], last_name: str | None, pattern: str) -> tuple[AnyPath | None, bool]:
    """Choose the file whose name follows the last one, and say whether there are more behind it.

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
    newer = [path for path in paths if last_name is None or path.name > last_name]
    return (newer[0] if newer else None), len(newer) > 1
