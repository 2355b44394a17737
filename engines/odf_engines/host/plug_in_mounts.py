"""Packages of others whose readers, converters and validators run in the sandbox, and where it shows them.

They are no part of an engine: what re-executes anything runs none of them, and an engine's digest leaves them out.

Source: clause VALID-3 in ``spec/validation.md``.
"""

from odf_engines.errors import SandboxUnavailableError
from odf_engines.host.runtime import package_folder
from odf_engines.sandbox.profile import Mount

__all__ = ["plug_in_mounts"]

_PLACE = "/runtime/plug-ins"


def plug_in_mounts() -> tuple[Mount, ...]:
    """Return how the sandbox shows packages of others that bring plug-ins, and those that our readers need.

    Those that are gone are left out.
    """
    from odf_engines.conversion import plug_in_names as converters
    from odf_engines.readers import plug_in_names as readers
    from odf_engines.validation import plug_in_names as validators

    mounts = []
    theirs = {name for kind in (readers, converters, validators) for name in kind.installed_plug_ins()}
    for name in sorted(theirs | {*readers.LIBRARIES}):
        try:
            mounts.append(Mount(package_folder(name), f"{_PLACE}/{name}"))
        except SandboxUnavailableError:
            continue  # a declaration that names it is answered where it is read
    return tuple(mounts)
