"""The engine as the registry gives it out.

It ingests: it reads, converts and merges what sources bring, and starts in a fraction of a second. Queries between
conversion and merge are for the engines that they name.

Source: clauses ENGINE-1, ENGINE-2 and ENGINE-25 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from odf_engines.contract import Limits
from odf_engines.engine import Capability, EngineSession, MachineNeed
from odf_engines.guest_packages import find_runtime, iter_engine_files, plug_in_mounts
from odf_engines.host.digest import content_digest
from odf_engines.host.runtime import Guest, compile_packages
from odf_engines.host.session import open_session
from odf_engines.ingest.declared import check_source
from odf_engines.ingest.state import fits_state, rebuild_state
from odf_engines.user_cache import user_cache
from odf_protocol.events import AddPushSource, MergeStrategy, SetPollingSource
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_protocol.manifest.errors import At

_PROGRAM = "odf_engines.arrow.worker"
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_MMAP_THRESHOLD_": str(8 * 1024**2)}
"""Arrow's other allocators keep what a request gave back, and this one large buffers: limits count that as used."""


class ArrowEngine:
    """See ``Engine``.

    Args:
        cache: Folder for file digests, by default the user's cache.
    """

    name = "arrow"
    capabilities = frozenset({Capability.INGEST})
    is_stepwise = False
    settings: Mapping[str, str] = {}

    def __init__(self, cache: Path | None = None) -> None:
        self.cache = cache or user_cache()

    @property
    def version(self) -> str:
        """Arrow's version."""
        return version("pyarrow")

    def digest(self) -> Multihash:
        files = dict(iter_engine_files(find_runtime(), _PROGRAM, self.cache))
        return content_digest(files, self.cache)

    def open(self, workspace: Path, limits: Limits) -> EngineSession:
        return open_session(
            lambda: Guest(
                name=self.name,
                runtime=find_runtime(),
                program=_PROGRAM,
                mounts=plug_in_mounts(),
                environment=_ENVIRONMENT,
            ),
            workspace,
            limits,
        )

    def prepare(self) -> None:
        compile_packages(find_runtime())

    def examine(self) -> Sequence[MachineNeed]:
        """See ``Engine``: nothing beside its packages."""
        return ()

    def fits_state(self, path: Path, merge: MergeStrategy, next_offset: int, columns: "Sequence[pa.Field]") -> bool:
        return fits_state(path, merge, next_offset, columns)

    def check_source(
        self,
        source: SetPollingSource | AddPushSource,
        vocabulary: Vocabulary,
        at: "At",
        *,
        has_converters: bool = False,
    ) -> None:
        """See ``IngestEngine``."""
        check_source(source, vocabulary, at, has_converters=has_converters)

    def rebuild_state(self, slices: Sequence[Path], merge: MergeStrategy, vocabulary: Vocabulary, target: Path) -> None:
        rebuild_state(slices, merge, vocabulary, target)
