"""Plug-ins of the program: what packages bring by entry points, ours in this wheel and those of others.

A group of entry points is a kind of plug-in, and has a contract: a class of the core. Every entry point of the group
leads to an instance of it. The core finds plug-ins here, and imports none of their packages.

A plug-in of ours whose extra is not installed is left out. One of another package that cannot be used is left out and
noted: the program goes on without it, the daemon logs it once, and ``doctor`` and ``status`` name it.

Source: clauses PLUG-1 to PLUG-4 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Final, TypeVar

from odf_engines.plug_in_names import DISTRIBUTION, PlugInNames, is_of_this_distribution
from odf_engines.registry import describe_extra, list_lacking_extras
from odf_node.errors import UsageError

GROUPS: Final = (
    "odf_node.actions",
    "odf_node.attachments",
    "odf_node.access",
    "odf_node.background",
    "odf_node.chain_rules",
    "odf_node.commands",
    "odf_node.engine_files",
    "odf_node.holds",
    "odf_node.machine",
    "odf_node.metrics",
    "odf_node.observers",
    "odf_node.peers",
    "odf_node.routes",
    "odf_node.sources",
    "odf_node.spark_sessions",
    "odf_node.status",
    "odf_node.tables",
)
"""The groups whose plug-ins run in the process of the node."""

COMMAND_PARTS: Final = ("TOPIC", "HELP", "EXAMPLES", "configure", "run")
"""What the module of a command has, which is the contract of the group ``odf_node.commands`` (CMD-1)."""

Contract = TypeVar("Contract")


@dataclass(frozen=True, slots=True)
class PlugInFailure:
    """A plug-in of another package that cannot be used.

    Attributes:
        group: Of its entry point.
        name: Of its entry point.
        package: The distribution that brings it.
        reason: Why it cannot be used.
    """

    group: str
    name: str
    package: str
    reason: str


@dataclass(frozen=True, slots=True)
class MissingPlugIn:
    """A plug-in whose extra is not installed, and the command that installs it."""

    group: str
    name: str
    remedy: str


_failures: Final[dict[tuple[str, str], PlugInFailure]] = {}
"""Of this process, by group and name."""
_reports: Final[list[Callable[[PlugInFailure], None]]] = []


@cache
def load_plug_ins(group: str, contract: type[Contract], prefix: str = "") -> Mapping[str, Contract]:
    """Load the plug-ins of a group.

    Args:
        group: One of ``GROUPS``.
        contract: The class that each of them is an instance of.
        prefix: Of the names of those that are loaded.

    Returns:
        The plug-ins by the names of their entry points; without those that cannot be used here.

    Raises:
        ImportError: One of our own is broken, though what its extra brings is installed.
    """
    names = PlugInNames(group, {})
    found: dict[str, Contract] = {}
    for name in names.installed():
        point = names.get_point(name)
        if (
            name.startswith(prefix)
            and not list_lacking_extras(point)
            and (plug_in := _load(point, contract)) is not None
        ):
            found[name] = plug_in
    return found


def note_failure(group: str, name: str, error: BaseException) -> None:
    """Note that a plug-in of another package cannot be used, or failed; the first failure of each is reported."""
    if (group, name) in _failures:
        return
    package = _distribution_of(PlugInNames(group, {}).get_point(name))
    failure = PlugInFailure(group, name, package, f"{type(error).__name__}: {error}")
    _failures[group, name] = failure
    for report in _reports:
        report(failure)


@contextmanager
def reporting_failures(report: Callable[[PlugInFailure], None]) -> Iterator[None]:
    """Have each plug-in that cannot be used reported once: those of this process so far at once, others when noted."""
    for failure in list_failures():
        report(failure)
    _reports.append(report)
    try:
        yield
    finally:
        _reports.remove(report)


@contextmanager
def contained(group: str, name: str) -> Iterator[None]:
    """Contain a failure of a plug-in of another package, which is noted; one of ours is raised."""
    try:
        yield
    except Exception as error:
        if is_of_this_distribution(PlugInNames(group, {}).get_point(name)):
            raise
        note_failure(group, name, error)


def list_failures() -> tuple[PlugInFailure, ...]:
    """List the plug-ins of other packages that cannot be used, by group and name; imports those packages."""
    for group in GROUPS:
        names = PlugInNames(group, {})
        for name in names.installed():
            point = names.get_point(name)
            if not is_of_this_distribution(point) and not list_lacking_extras(point):
                _load(point, object)
    return tuple(_failures[key] for key in sorted(_failures))


def require_plug_in(group: str, name: str, setting: str) -> None:
    """Check that a plug-in of ours is installed, for a setting that says what it does.

    Raises:
        UsageError: It is not; names the command that installs it.
    """
    names = PlugInNames(group, {})
    if name not in names.installed():
        raise UsageError(f"{setting} needs the plug-in '{name}', which this installation does not have")
    for extra in list_lacking_extras(names.get_point(name)):
        raise UsageError(f"{setting} needs the plug-in '{name}': {describe_extra(DISTRIBUTION, extra)}")


def list_missing_plug_ins() -> tuple[MissingPlugIn, ...]:
    """List the plug-ins whose extras are not installed, by group and name; imports none."""
    missing: list[MissingPlugIn] = []
    for group in GROUPS:
        names = PlugInNames(group, {})
        for name in names.installed():
            point = names.get_point(name)
            remedies = [describe_extra(_distribution_of(point), extra) for extra in list_lacking_extras(point)]
            missing += [MissingPlugIn(group, name, remedy) for remedy in remedies]
    return tuple(missing)


def _load(point: EntryPoint, contract: type[Contract]) -> Contract | None:
    """Import a plug-in; noted and None where it is of another package and cannot be used."""
    try:
        plug_in = point.load()
        if point.group == "odf_node.commands" and (lacking := [n for n in COMMAND_PARTS if not hasattr(plug_in, n)]):
            raise TypeError(f"{point.value} is no command: it has no {', '.join(lacking)}")  # noqa: TRY301 - as below
        if not isinstance(plug_in, contract):
            raise TypeError(f"{point.value} is a {type(plug_in).__name__}, expected a {contract.__name__}")  # noqa: TRY301 - noted as what the import raises is
    except (Exception, SystemExit) as error:
        if is_of_this_distribution(point):
            raise
        note_failure(point.group, point.name, error)
        return None
    return plug_in


def _distribution_of(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else point.dist.name
