"""A session of an added engine: that of any guest, with its files at the places that ODF's contract has for them.

Source: clauses ADDED-6 and ADDED-7 in ``spec/extensions/added-engines.md``.
"""

import dataclasses
from pathlib import Path

from odf_engines.added.places import INPUTS, OUTPUTS
from odf_engines.contract import Limits, TransformRequest, TransformResponse
from odf_engines.errors import SandboxUnavailableError
from odf_engines.host.guest import Guest
from odf_engines.host.session import HostSession
from odf_engines.sandbox.process import SandboxedProcess
from odf_engines.sandbox.profile import Mount, Profile


class AddedSession(HostSession):
    """See ``HostSession``; slices are shown under their hashes, as another implementation calls them.

    Raises:
        SandboxUnavailableError: There is no sandbox of our own, which the operator may do without for our engines only.
    """

    def __init__(
        self,
        guest: Guest,
        workspace: Path,
        limits: Limits,
        *,
        process: type[SandboxedProcess] = SandboxedProcess,
        has_filter: bool = True,
    ) -> None:
        if not process.is_sandbox:
            raise SandboxUnavailableError(f"engine {guest.name} was added from a file and runs in no other sandbox")
        super().__init__(guest, workspace, limits, process=process, has_filter=has_filter)
        self._hashes: dict[Path, str] = {}

    def transform(self, request: TransformRequest) -> TransformResponse:
        named = [zip(each.slices, each.hashes, strict=False) for each in request.inputs]
        self._hashes = {path: str(each) for pairs in named for path, each in pairs}
        return super().transform(request)

    def show_input(self, path: Path) -> str:
        """See ``HostSession``: a slice under its hash, and all of it below the contract's folder."""
        shown = self.link_input(path, self._hashes.get(path))
        return f"{INPUTS}/{shown.relative_to(self.folder / 'in')}"

    def profile(self) -> Profile:
        profile = super().profile()
        shown = (Mount(self.folder / "in", INPUTS), Mount(self.folder / "out", OUTPUTS, is_writable=True))
        return dataclasses.replace(profile, mounts=(*profile.mounts, *shown))
