"""A package of somebody else's that brings plug-ins, as an installer leaves it."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from odf_engines import plug_in_names


def write_package(site: Path, name: str, program: str, group: str, points: Mapping[str, str]) -> None:
    """Install a package of one file in ``site``.

    Args:
        site: A folder that may be there.
        name: To import it by.
        program: Its text.
        group: Of its entry points.
        points: What its entry points name, in full, by their names.
    """
    (site / name).mkdir(parents=True)
    (site / name / "__init__.py").write_text(program)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    lines = "".join(f"{point} = {place}\n" for point, place in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")


@contextmanager
def installed_package(site: Path, name: str, program: str, group: str, points: Mapping[str, str]) -> Iterator[None]:
    """Let a package be installed in ``site`` meanwhile; ``points``: classes of it by the names of entry points."""
    write_package(site, name, program, group, {point: f"{name}:{kind}" for point, kind in points.items()})
    sys.path.insert(0, str(site))
    plug_in_names._points_of.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        sys.modules.pop(name, None)
        plug_in_names._points_of.cache_clear()
