"""The engine as the registry gives it out.

Source: clauses ENGINE-1, ENGINE-24 and FUSION-1 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from odf_engines.contract import Limits
from odf_engines.datafusion.settings import SETTINGS
from odf_engines.engine import Capability, EngineSession, MachineNeed
from odf_engines.errors import EngineError
from odf_engines.guest_packages import find_runtime, iter_engine_files
from odf_engines.host.digest import content_digest
from odf_engines.host.runtime import Guest, compile_packages
from odf_engines.host.session import open_session
from odf_engines.user_cache import user_cache
from odf_protocol.multihash import Multihash

_PROGRAM = "odf_engines.datafusion.worker"


class DataFusionEngine:
    """See ``Engine``.

    Args:
        cache: Folder for what can be made again; by default the user's cache.
    """

    name = "datafusion"
    capabilities = frozenset({Capability.TRANSFORM, Capability.PREPROCESS, Capability.QUERY})
    is_stepwise = True

    def __init__(self, cache: Path | None = None) -> None:
        self.cache = cache or user_cache()

    @property
    def version(self) -> str:
        """DataFusion's version."""
        return version("datafusion")

    @property
    def settings(self) -> Mapping[str, str]:
        return SETTINGS

    def digest(self) -> Multihash:

        return content_digest(dict(iter_engine_files(find_runtime(), _PROGRAM, self.cache)), self.cache)

    def open(self, workspace: Path, limits: Limits) -> EngineSession:

        def make_guest() -> Guest:
            return Guest(name=self.name, runtime=find_runtime(), program=_PROGRAM)

        return open_session(make_guest, workspace, limits)

    def prepare(self) -> None:
        """Compile what the sandbox imports, which it could not keep."""
        compile_packages(find_runtime())

    def examine(self) -> Sequence[MachineNeed]:
        fix = "install it again: pip install --force-reinstall odf-node"
        try:
            folder = dict(find_runtime().packages)["datafusion"]
        except EngineError as error:
            return [MachineNeed(what="DataFusion", is_there=False, found=str(error), fix=fix)]
        return [MachineNeed(what="DataFusion", is_there=True, found=f"{self.version} ({folder})", fix=fix)]
