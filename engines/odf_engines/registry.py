"""Which engines are installed, and what they offer.

Engines are found by the entry point group ``odf_engines``: each names a function without arguments that returns an
``Engine``. A package on its own can so bring another engine. An entry point that names extras counts where what these
bring is installed; where it is not, who asks for the engine is told how to install it. Nothing is run on another engine
in the place of the one that is named.

Source: spec/ingest.md ING-7; clauses ENGINE-2, ENGINE-14 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

import re
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from odf_engines import plug_in_names
from odf_engines.engine import Capability, ClusterEngine, Engine, IngestEngine
from odf_engines.errors import EngineMissingError, UnusableEngineError

ENTRY_POINT_GROUP = "odf_engines"

_EXTRAS_OF_PLUG_INS: Final = {"spark": "spark"}
"""Extra by engine: plug-ins of this wheel, for a copy of the program that was made without the plug-in's folder."""


def installed_engines() -> tuple[str, ...]:
    """Return the names of the installed engines, sorted; loads none of them."""
    return tuple(sorted({point.name for point in _points()}))


def engines_offering(capability: Capability) -> tuple[str, ...]:
    """Return the names of the installed engines that offer this, sorted."""
    return tuple(sorted(name for name, each in usable_engines().items() if capability in each.capabilities))


def usable_engines() -> dict[str, Engine]:
    """Load the installed engines, by name; without those of other packages that cannot be loaded."""
    found = {}
    for name in installed_engines():
        with suppress(UnusableEngineError):
            found[name] = get_engine(name)
    return found


def get_engine(name: str, capability: Capability | None = None) -> Engine:
    """Load an engine.

    Args:
        name: As a transform names it; case does not matter (ODF engine ids).
        capability: What it has to offer, None for anything.

    Raises:
        EngineMissingError: Not installed, or it does not offer this.
        UnusableEngineError: It is another package's, and cannot be loaded.
    """
    point = _find_entry_point(name)
    if point is None:
        raise EngineMissingError(name, installed_engines(), remedy=find_remedy(name))
    engine = _load(point)
    if capability is not None and capability not in engine.capabilities:
        raise EngineMissingError(name, engines_offering(capability), capability=capability.value)
    return engine


def _load(point: EntryPoint) -> Engine:
    try:
        engine: Engine = point.load()()
        _ = engine.capabilities  # of what is no engine there are none
    except (Exception, SystemExit) as error:
        if plug_in_names.is_of_this_distribution(point):
            raise
        package = "an unknown package" if point.dist is None else point.dist.name
        raise UnusableEngineError(point.name, package, f"{type(error).__name__}: {error}") from error
    return engine


def get_ingest_engine(name: str) -> IngestEngine:
    """Load an engine that ingests.

    Raises:
        EngineMissingError: As ``get_engine``.
    """
    engine: IngestEngine = get_engine(name, Capability.INGEST)  # type: ignore[assignment]  # it says that it is one
    return engine


def find_cluster_engine() -> ClusterEngine | None:
    """Find the installed engine whose sessions may use a cluster; None: none does."""
    return next((each for each in usable_engines().values() if isinstance(each, ClusterEngine)), None)


def find_remedy(name: str) -> str:
    """Return the command that installs an engine which lacks packages, or is a plug-in of ours; empty for any other."""
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name.lower() == name.lower() and point.dist is not None and (lacking := list_lacking_extras(point)):
            return describe_extra(point.dist.name, lacking[0])
    extra = _EXTRAS_OF_PLUG_INS.get(name.lower())
    return "" if extra is None else describe_extra(plug_in_names.DISTRIBUTION, extra)


def is_of_this_distribution(name: str) -> bool:
    """Say whether an engine is one of ours, whose slices are written by code of ours; loads none."""
    point = _find_entry_point(name)
    return point is not None and plug_in_names.is_of_this_distribution(point)


def list_packages() -> tuple[str, ...]:
    """List the import names of the packages that bring the installed engines, sorted; loads none."""
    return tuple(sorted({point.module.partition(".")[0] for point in _points()}))


def _find_entry_point(name: str) -> EntryPoint | None:
    wanted = name.lower()
    return next((point for point in _points() if point.name.lower() == wanted), None)


@cache  # of a process: reading what every installed package says took half of a small ingest
def _points() -> tuple[EntryPoint, ...]:
    return tuple(point for point in entry_points(group=ENTRY_POINT_GROUP) if not list_lacking_extras(point))


def list_lacking_extras(point: EntryPoint) -> list[str]:
    """List the extras of an entry point that are not whole here."""
    if not point.extras or point.dist is None:
        return []
    return [extra for extra in point.extras if list_lacking(point.dist.name, extra)]


def find_preprocess_engine(name: str) -> str:
    """Return the engine that runs a preprocess step.

    Args:
        name: As the step names it; case does not matter.

    Raises:
        EngineMissingError: It is none of those that are here.
    """
    here = engines_offering(Capability.PREPROCESS)
    for each in here:
        if each.lower() == name.lower():
            return each
    raise EngineMissingError(name, here, purpose="preprocess", remedy=find_remedy(name))


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
