"""Packages of others whose readers, converters and validators run in the sandbox, and where it shows them.

They are no part of an engine: what re-executes anything runs none of them, and an engine's digest leaves them out.

Source: clause VALID-3 in ``spec/validation.md``.
"""

from contextlib import suppress

from odf_engines.errors import SandboxUnavailableError
from odf_engines.host import datafusion_runtime
from odf_engines.host.runtime import find_module_file, package_folder
from odf_engines.plug_in_names import CONVERTERS, READERS, READERS_LIBRARIES, VALIDATORS
from odf_engines.sandbox.profile import Mount

_PLACE = "/runtime/plug-ins"
_SHAPES = "shapefile"  # one file, which reads Shapefiles


def plug_in_mounts() -> tuple[Mount, ...]:
    """Return how the sandbox shows packages of others that bring plug-ins, and those that our own need.

    Those that are gone are left out.
    """
    mounts = []
    for name in sorted({*READERS.packages(), *CONVERTERS.packages(), *VALIDATORS.packages(), *READERS_LIBRARIES}):
        try:
            mounts.append(Mount(package_folder(name), f"{_PLACE}/{name}"))
        except SandboxUnavailableError:
            continue  # a declaration that names it is answered where it is read
    with suppress(SandboxUnavailableError):
        runtime = datafusion_runtime.find_runtime()
        shown = (*runtime.files, ("datafusion", dict(runtime.packages)["datafusion"]))
        mounts += [Mount(path, f"{_PLACE}/{place}") for place, path in shown]
    return (*mounts, *shapefile_mounts(_PLACE))


def shapefile_mounts(folder: str) -> tuple[Mount, ...]:
    """Return how the sandbox shows what reads Shapefiles, in this folder; nothing where it is not installed."""
    try:
        return (Mount(find_module_file(_SHAPES), f"{folder}/{_SHAPES}.py"),)
    except SandboxUnavailableError:
        return ()
