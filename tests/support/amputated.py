"""A copy of the program without some of its packages, in an environment of its own that sees all libraries.

The copy takes part as an editable installation does: its folders stand on the path of the environment, and so does the
folder with this environment's libraries, of which lines that lead to the working tree are not read there.
"""

import configparser
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TREES = ("protocol", "engines", "node")
CORE = {"odf_protocol", "odf_engines", "odf_node"}
_DECIDES = "_protocol"
"""Ends the name of the part of a plug-in that decides without I/O, which goes with it."""


def list_plug_in_packages() -> list[str]:
    """List the plug-ins beside the core."""
    packages = {path.parent.name for tree in TREES for path in (REPOSITORY / tree).glob("*/__init__.py")}
    return sorted(name for name in packages - CORE if name.removesuffix(_DECIDES) not in packages - {name})


def make_amputated(folder: Path, without: Sequence[str]) -> Path:
    """Make the copy.

    Args:
        folder: Where it is made.
        without: Import names of packages that are left out, with their entry points.

    Returns:
        The interpreter that runs it.
    """
    without = [*without, *(f"{name}{_DECIDES}" for name in without)]
    # With what is compiled: times of files go with them, so that it is used.
    for tree in TREES:
        for package in (REPOSITORY / tree).glob("*/__init__.py"):
            if package.parent.name not in without:
                shutil.copytree(package.parent, folder / tree / package.parent.name)
    (folder / "environment").mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True, timeout=60)
    (site,) = (folder / "environment" / "lib").glob("python3*/site-packages")
    _write_metadata(site, without)
    libraries = sysconfig.get_path("purelib")
    lines = [*(str(folder / tree) for tree in TREES), libraries]
    (site / "program.pth").write_text("".join(f"{line}\n" for line in lines))
    return folder / "environment" / "bin" / "python"


def _write_metadata(site: Path, without: Sequence[str]) -> None:
    """Write what an installer would have: that of this environment, but for entry points of what is left out."""
    ours = distribution("odf-node")
    info = site / f"odf_node-{ours.version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(ours.read_text("METADATA") or "")
    points = configparser.ConfigParser(delimiters=("=",))
    points.optionxform = str  # type: ignore[assignment,method-assign]  # names are as they are
    points.read_string(ours.read_text("entry_points.txt") or "")
    for group in points.sections():
        for name, place in points.items(group):
            if place.partition(":")[0].partition(".")[0] in without:
                points.remove_option(group, name)
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)
