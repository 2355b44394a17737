"""The engine as the registry gives it out.

Source: clauses ENGINE-1 and ENGINE-2 in ``spec/extensions/engine-contract.md``.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from odf_engines.contract import EngineSession, Limits
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.system_calls import filter_program
from odf_engines.spark.launch import SETTINGS
from odf_engines.spark.runtime import find_runtime
from odf_engines.spark.session import SparkSession
from odf_protocol.multihash import Multihash

__all__ = ["SparkEngine"]

_MOST_CORES = 4  # guess: what a slice of one ordered partition can use of a machine


class SparkEngine:
    """See ``Engine``.

    Args:
        cache: Folder for what can be made again: class-data archives and file digests. By default the user's cache.
        cores: Tasks at the same time; by default those of the machine, at most 4. Never changes a result.
    """

    name = "spark"

    def __init__(self, cache: Path | None = None, cores: int | None = None) -> None:
        self._cache = cache or _user_cache()
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

        return engine_digest(find_runtime(), self._cache)

    def open(self, workspace: Path, limits: Limits) -> EngineSession:
        """See ``Engine``."""
        find_bubblewrap()
        filter_program()
        return SparkSession(find_runtime(), workspace, limits, cores=self._cores)


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odf-node"
