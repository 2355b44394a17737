"""An added engine as the rest of the program sees it: an engine like any other.

Source: clauses ENGINE-1 and ADDED-1 to ADDED-7 in ``spec/extensions``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from odf_engines.added.content import digest_of_contents
from odf_engines.added.description import EngineDescription
from odf_engines.added.runtime import RootRuntime, find_runtime
from odf_engines.added.session import AddedSession
from odf_engines.contract import Limits
from odf_engines.engine import EngineSession, MachineNeed, Offer
from odf_engines.errors import EngineError, EngineFailureError
from odf_engines.host.cache_shelf import user_cache
from odf_engines.host.guest import Guest
from odf_engines.host.python_program import compile_packages
from odf_engines.host.session import open_session
from odf_protocol.multihash import Multihash

_PROGRAM = "odf_engines.added.worker"


class AddedEngine:
    """See ``Engine``.

    Args:
        description: What is known of it.
        files: The program, or the root folder.
        cache: Folder for what can be made again; by default the user's cache.
    """

    offers = frozenset({Offer.TRANSFORM})
    is_stepwise = True
    settings: ClassVar[Mapping[str, str]] = {}  # what it is started with is part of its digest

    def __init__(self, description: EngineDescription, files: Path, cache: Path | None = None) -> None:
        self.description = description
        self.files = files
        self.cache = cache or user_cache()
        self._digest: Multihash | None = None

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def version(self) -> str:
        """What its archive calls itself, or the end of its digest."""
        return self.description.version or Multihash.parse(self.description.digest).short

    def digest(self) -> Multihash:
        """See ``Engine``; of the files as they were when it was first asked for.

        Raises:
            EngineFailureError: They are not those that were added.
        """
        if self._digest is None:
            self._digest = self._look()
        return self._digest

    def _look(self) -> Multihash:
        found = digest_of_contents(self.files, self.description.start, self.cache)
        if str(found) != self.description.digest:
            raise EngineFailureError(
                f"engine {self.name} is not what was added: expected {self.description.digest}, found {found}; "
                f"remove it (odf-node engine remove {self.name}@{self.description.digest}) and add it again"
            )
        return found

    def open(self, workspace: Path, limits: Limits) -> EngineSession:
        """See ``Engine``; its files are looked at before each start."""
        self._look()
        return open_session(self._guest, workspace, limits, session=AddedSession)

    def prepare(self) -> None:
        """Compile what our program inside the sandbox imports."""
        compile_packages(find_runtime(self.files))

    def examine(self) -> Sequence[MachineNeed]:
        what = f"engine {self.name}"
        mend = f"odf-node engine remove {self.name}@{self.description.digest}, and add it again"
        try:
            find_runtime(self.files)
            digest = self.digest()
        except EngineError as error:
            return [MachineNeed(what=what, is_there=False, found=str(error), mend=mend)]
        return [MachineNeed(what=what, is_there=True, found=f"{self.version}, added with digest {digest}", mend=mend)]

    def _guest(self) -> Guest:
        runtime = find_runtime(self.files)
        start = self.description.start
        return Guest(
            name=self.name,
            runtime=runtime,
            program=_PROGRAM,
            counts_rows=False,
            launcher=runtime.launcher() if isinstance(runtime, RootRuntime) else (),
            arguments={"name": self.name, "start": msgspec.to_builtins(start)},
        )
