"""Forms in which rows are shown or written; ``rows`` does it, and loads Arrow."""

from pathlib import Path
from typing import Final

from odf_node.errors import UsageError

PARQUET: Final = "parquet"
ARROW: Final = "arrow"

FILE_FORMATS: Final = (PARQUET, ARROW)
"""Those that no terminal shows, so that they are written to files."""

FORMATS: Final = ("table", "csv", "json", "ndjson", *FILE_FORMATS)


def check_output_path(path: Path) -> None:
    """Find out before long work whether its result can be put there.

    Raises:
        UsageError: Something is there already, or the folder is missing.
    """
    if path.exists():
        raise UsageError(f"{path} is there already; name another file or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
