"""The engine as the registry gives it out.

Source: clauses ENGINE-1 and ENGINE-2 in ``spec/extensions/engine-contract.md``.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from odf_engines.contract import EngineSession, Limits
from odf_engines.sandbox.caller import CallerConfinedProcess
from odf_engines.sandbox.layers import Layer, accepted_layers, missing_layers
from odf_engines.sandbox.process import SandboxedProcess
from odf_engines.spark.launch import SETTINGS, SHORT_LIVED
from odf_engines.spark.runtime import find_runtime
from odf_engines.spark.session import SparkSession
from odf_protocol.multihash import Multihash

__all__ = ["SparkEngine"]

_MOST_CORES = 4  # guess: what a slice of one ordered partition can use of a machine


class SparkEngine:
    """See ``Engine``.

    Args:
        cache: Folder for what can be made again: class-data archives, compiled Python, file digests. By default the
            user's cache.
        cores: Tasks at the same time; by default those of the machine, at most 4. Never changes a result.
        is_confined_by_caller: Whether this whole program runs in a container of its own, in which no sandbox can be
            made; then the container is the sandbox. Never true where strangers' queries meet anything of value.
        is_long_lived: Whether sessions work for minutes on large data, so that Java's slow second compiler pays off.
    """

    name = "spark"

    def __init__(
        self,
        cache: Path | None = None,
        cores: int | None = None,
        *,
        is_confined_by_caller: bool = False,
        is_long_lived: bool = False,
    ) -> None:
        self._is_confined_by_caller = is_confined_by_caller
        self._is_long_lived = is_long_lived
        self.cache = cache or _user_cache()
        self._cores = cores or min(len(os.sched_getaffinity(0)), _MOST_CORES)

    @property
    def version(self) -> str:
        """Spark's version."""
        from importlib.metadata import version

        return version("pyspark")

    @property
    def settings(self) -> Mapping[str, str]:
        """See ``Engine``."""
        return SETTINGS

    def digest(self) -> Multihash:
        """See ``Engine``."""
        from odf_engines.spark.digest import engine_digest

        return engine_digest(find_runtime(), self.cache)

    def open(self, workspace: Path, limits: Limits) -> EngineSession:
        """See ``Engine``."""
        from odf_engines.host.compiled import find_compiled
        from odf_engines.spark.class_data import find_class_data

        missing = frozenset({Layer.NAMESPACES})
        if not self._is_confined_by_caller:
            missing = missing_layers(accepted_layers(os.environ))
        process = CallerConfinedProcess if Layer.NAMESPACES in missing else SandboxedProcess
        runtime = find_runtime()
        class_data, compiled = find_class_data(runtime, self.cache), find_compiled(runtime, self.cache)
        options = () if self._is_long_lived else SHORT_LIVED
        return SparkSession(
            runtime,
            workspace,
            limits,
            cores=self._cores,
            class_data=class_data,
            compiled=compiled,
            java_options=options,
            process=process,
            has_filter=Layer.FILTER not in missing,
        )

    def prepare(self) -> None:
        """Make what shortens every later start on this machine; takes half a minute once, then nothing.

        Raises:
            EngineError: It cannot be made; sessions start without it, only slower.
        """
        from odf_engines.host.compiled import make_compiled
        from odf_engines.spark.class_data import make_class_data

        compiled = make_compiled(find_runtime(), self.cache)
        make_class_data(find_runtime(), self.cache, compiled)


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odf-node"
