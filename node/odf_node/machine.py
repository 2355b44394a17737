"""What this machine offers: each thing the node relies on is tried, not assumed.

What plug-ins rely on they try themselves, as the group ``odf_node.machine`` says.

Source: clause PLUG-23 in ``spec/plug-ins.md``.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from odf_engines.contract import Limits
from odf_engines.errors import EngineError, SandboxUnavailableError, UnusableEngineError
from odf_engines.registry import (
    describe_extra,
    find_cluster_engine,
    find_version,
    get_engine,
    installed_engines,
    list_brought,
    list_lacking,
    usable_engines,
)
from odf_engines.sandbox.boot_notes import forget_results
from odf_engines.sandbox.layers import WITHOUT_VARIABLE, accepted_layers, examine_layers
from odf_node.configuration import find_configuration_file, load_configuration
from odf_node.engines.cluster import find_cluster, opened_on_cluster
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder, find_default_home
from odf_node.plug_ins import contained, list_failures, list_missing_plug_ins, load_plug_ins
from odf_node.records.errors import HomeVersionError, mapped_os_errors
from odf_node.store import MetadataStore
from odf_node.upkeep.scrubbing import read_scrub_state
from odf_node.wording import count_of
from odf_protocol.errors import OdfError

OLDEST_PYTHON: Final = (3, 11)
GROUP: Final = "odf_node.machine"
LOW_SPACE_BYTES: Final = 2_000_000_000  # guess: an engine's scratch and a few large slices
PACKAGE: Final = "odf-node"
FIXING: Final = {
    "namespaces": "install the package bubblewrap, or allow unprivileged user namespaces; in a container, with "
    "'podman run --security-opt unmask=/proc/* --security-opt seccomp=unconfined'",
    "cgroup-namespace": "use a kernel with cgroup namespaces",
    "system-call-filter": "install libseccomp2, or use a kernel with seccomp filters",
    "watch": "use a kernel that lists the children of a process in /proc",
}


@dataclass(frozen=True, slots=True)
class MachineFinding:
    """One thing: whether it is there, what was found, and how to fix it where it is not."""

    what: str
    ok: bool
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """What an entry point of ``odf_node.machine`` leads to.

    Attributes:
        examine: Tries what a plug-in relies on, given the folder of the home, which may not be there; changes nothing.
    """

    examine: Callable[[Path], Iterable[MachineFinding]]


def examine_machine(home: Path | None) -> list[MachineFinding]:
    """Try everything; nothing is changed."""
    folder = home or find_default_home(os.environ)
    return [
        _python(),
        *_sandbox(),
        _try("engine", _engine, "install odf-node again"),
        *_unusable_engines(),
        *_needs(),
        *_cluster(folder),
        *_checks(folder),
        *examine_extras(),
        *_plug_ins(),
        _home(folder),
        _space(folder),
        _objects(folder),
    ]


def _try(what: str, probe: Callable[[], str], fix: str) -> MachineFinding:
    try:
        return MachineFinding(what, True, probe())
    except (EngineError, OSError, subprocess.SubprocessError) as error:
        return MachineFinding(what, False, str(error), fix)


def _python() -> MachineFinding:
    found = (
        f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}, SQLite {sqlite3.sqlite_version}"
    )
    return MachineFinding("Python", sys.version_info >= OLDEST_PYTHON, found, "install Python 3.11 or newer")


def _sandbox() -> list[MachineFinding]:
    """Every layer that a machine can lack, and what limits the use of resources."""
    try:
        accepted = accepted_layers(os.environ)
    except SandboxUnavailableError as error:
        return [MachineFinding("sandbox", False, error.reason, f"correct {WITHOUT_VARIABLE}")]
    findings = []
    forget_results()  # who asks wants to know what works now
    for finding in examine_layers():
        is_waived = not finding.is_there and finding.layer in accepted
        found = f"missing, which {WITHOUT_VARIABLE} allows: {finding.found}" if is_waived else finding.found
        variable = f"{WITHOUT_VARIABLE} names {finding.layer}"
        fix = f"{FIXING[finding.layer]}; until then no engine starts, unless {variable}"
        findings.append(MachineFinding(f"sandbox: {finding.layer}", finding.is_there or is_waived, found, fix))
    limits = "kernel limits of each process, and the watch for all of them together; no control groups"
    return [*findings, MachineFinding("sandbox: limits", True, limits)]


def _engine() -> str:
    return ", ".join(f"{name} {each.version}" for name, each in usable_engines().items()) or "none"


def _unusable_engines() -> Iterator[MachineFinding]:
    """Yield the engines of other packages that cannot be loaded."""
    for name in installed_engines():
        try:
            get_engine(name)
        except UnusableEngineError as error:
            yield MachineFinding(f"engine {name}", False, str(error), "install its package again, or remove it")


def _needs() -> list[MachineFinding]:
    """Return what each engine needs beside the sandbox."""
    found = [need for engine in usable_engines().values() for need in engine.examine()]
    return [MachineFinding(need.what, need.is_there, need.found, need.fix) for need in found]


def examine_extras(distribution: str = PACKAGE) -> list[MachineFinding]:
    """Say of each extra whether what it brings is installed; none is needed, so none is missing."""
    try:
        extras = metadata.metadata(distribution).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:  # run from a folder
        return []
    findings = []
    for extra in extras:
        brought = [f"{name} {find_version(name)}" for name in list_brought(distribution, extra)]
        reported = ", ".join(brought) or f"part of {distribution}"
        if list_lacking(distribution, extra):
            reported = f"not installed: {describe_extra(distribution, extra)}"
        findings.append(MachineFinding(f"extra {extra}", True, reported))
    return findings


def _plug_ins() -> list[MachineFinding]:
    """Name the plug-ins that wait for an extra, and those of other packages that cannot be used (PLUG-2, PLUG-3)."""
    missing = [
        MachineFinding(f"plug-in {each.name}", True, f"not installed: {each.remedy}")
        for each in list_missing_plug_ins()
    ]
    broken = [
        MachineFinding(
            f"plug-in {each.name}",
            False,
            f"package '{each.package}': {each.reason}",
            f"install a version of {each.package} that works with this odf-node, or uninstall it",
        )
        for each in list_failures()
    ]
    return [*missing, *broken]


def _cluster(folder: Path) -> list[MachineFinding]:
    """Try the cluster that the settings name, as a step would use it (CLUSTER-6)."""
    try:
        engines = load_configuration(find_configuration_file(None, os.environ, folder), os.environ).engines
    except UsageError as error:
        return [MachineFinding("settings", False, str(error), "correct them ('odf-node serve --check' reads them)")]
    cluster = find_cluster(engines)
    if cluster is None:
        return []
    what, fix = f"cluster {cluster.master}", "correct the settings engines.spark_… or the cluster"
    engine = find_cluster_engine()
    if engine is None:
        return [MachineFinding(what, False, "no engine that is installed uses one", "pip install 'odf-node[spark]'")]
    try:
        with opened_on_cluster(engine, cluster, Limits()) as session:
            session.start()
    except OdfError as error:
        return [MachineFinding(what, False, str(error), fix)]
    return [MachineFinding(what, True, f"takes this node; its executors write to {cluster.shared_folder}")]


def _checks(folder: Path) -> Iterator[MachineFinding]:
    """Yield what plug-ins find, in the order of their names."""
    for name, check in load_plug_ins(GROUP, MachineCheck).items():
        found: list[MachineFinding] = []
        with contained(GROUP, name):
            found += check.examine(folder)
        yield from found


def _home(folder: Path) -> MachineFinding:
    home = HomeFolder(folder)
    try:
        other_use = home.find_other_use()
    except OSError as error:
        other_use = str(error)
    if other_use is not None:
        return MachineFinding("home", False, f"{folder}: {other_use}", "name another folder with --home")
    if not home.exists():
        return MachineFinding("home", True, f"{folder} (not made yet)")
    try:
        with mapped_os_errors(folder):
            store = MetadataStore(home)
            count = len(store.list_datasets())
            store.close()
    except OdfError as error:
        fix = "restore the folder from a backup, or name another --home"
        if isinstance(error, HomeVersionError):
            fix = "start the odf-node that made it, or name another --home"
        return MachineFinding("home", False, str(error), fix)
    found = f"{folder} with {count_of(count, 'dataset')}"
    if not os.access(folder, os.W_OK):
        fix = "let this user write there; until then it can be looked at, and answers no SQL"
        return MachineFinding("home", False, f"{found}, which cannot be written", fix)
    return MachineFinding("home", True, found)


def _objects(folder: Path) -> MachineFinding:
    state = read_scrub_state(HomeFolder(folder).cache)
    when = f"read again from {state.began_at}" if state.began_at else "never read again; 'odf-node scrub' does it"
    found = f"{len(state.damaged)} of them damaged, {when}" if state.damaged else f"none is known to be damaged, {when}"
    return MachineFinding("objects", not state.damaged, found, "'odf-node repair' fetches damaged objects again")


def _space(folder: Path) -> MachineFinding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return MachineFinding(
        "free space", free > LOW_SPACE_BYTES, f"{free / 1e9:.1f} GB at {existing}", "make room on this disk"
    )
