"""What an extra of an installed distribution brings, and how to get one that is not there.

Source: clause ENGINE-2 in ``spec/extensions/engine-contract.md``.
"""

import re
from functools import cache
from importlib import metadata


@cache
def list_brought(distribution: str, extra: str) -> tuple[str, ...]:
    """List the names of the packages that an extra brings, in the order in which it declares them.

    Raises:
        PackageNotFoundError: There is no such distribution.
    """
    required = metadata.requires(distribution) or []
    is_of_extra = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    return tuple(re.split(r"[^\w.-]", each)[0] for each in required if is_of_extra.search(each))


def list_lacking(distribution: str, extra: str) -> tuple[str, ...]:
    """List those of them that are not installed."""
    return tuple(each for each in list_brought(distribution, extra) if not _is_there(each))


def describe_extra(distribution: str, extra: str) -> str:
    """Say how to get an extra."""
    return f"pip install '{distribution}[{extra}]'"


def find_version(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_there(package: str) -> bool:
    try:
        metadata.Distribution.from_name(package)  # reads nothing, of which there is much in Spark's
    except metadata.PackageNotFoundError:
        return False
    return True
