"""An added engine as the rest of the program sees it: an engine like any other.

Source: clauses ENGINE-1 and ADDED-1 to ADDED-7 in ``spec/extensions``.
"""

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import msgspec

from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits, TransformRequest, TransformResponse
from odf_engines.engine import Capability, EngineSession, MachineNeed
from odf_engines.errors import EngineError, EngineFailureError, SandboxUnavailableError
from odf_engines.host import runtime
from odf_engines.host.runtime import Guest, compile_packages
from odf_engines.host.session import HostSession, open_session
from odf_engines.sandbox.profile import Mount, Profile, show_root
from odf_engines.user_cache import user_cache
from odf_foreign.added.content import digest_of_contents
from odf_foreign.added.description import INPUTS, OUTPUTS, OWN_PLACES, PROGRAM, EngineDescription
from odf_protocol.multihash import Multihash


class AddedSession(HostSession):
    """See ``HostSession``; slices are shown under their hashes, as another implementation calls them."""

    _hashes: Mapping[Path, str] = MappingProxyType({})  # of the present request

    def check_confinement(self, guest: Guest, process: type[SandboxedProcess], *, has_filter: bool) -> None:
        """See ``HostSession``: it runs in a sandbox of ours, which the operator may do without for our engines only."""
        if not process.is_sandbox:
            raise SandboxUnavailableError(f"engine {guest.name} was added from a file and runs in no other sandbox")

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


_PACKAGES = ("flatbuffers", "grpc", "msgspec", "numpy", "pyarrow")
_MODULE = "typing_extensions"  # one file, which grpc imports
_SYSTEM = "/runtime/system"
_PT_INTERP = 3  # elf(5): the segment that names the loader


@dataclass(frozen=True, kw_only=True)
class ProgramRuntime(runtime.Runtime):
    """The engine is one file, and runs on the libraries of this machine.

    Attributes:
        program: The file.
    """

    program: Path

    def parts(self) -> tuple[Mount, ...]:
        return (Mount(self.program, PROGRAM), _module_mount())


@dataclass(frozen=True, kw_only=True)
class RootRuntime(runtime.Runtime):
    """The engine has a root folder of its own.

    Attributes:
        root: It.
    """

    root: Path

    def mounts(self) -> tuple[Mount, ...]:
        shown = [*show_root(self.root, OWN_PLACES)[0]]
        for each in (*super().mounts(), _module_mount()):
            if each.target.startswith("/usr/"):
                shown.append(Mount(each.source, f"{_SYSTEM}/{each.target.removeprefix('/usr/')}"))
            elif not each.target.startswith("/etc/"):
                shown.append(each)
        return tuple(shown)

    def links(self) -> dict[str, str]:
        return show_root(self.root, OWN_PLACES)[1]

    def launcher(self) -> tuple[str, ...]:
        """Return what stands before the command of our program: this machine's loader, at its place.

        Raises:
            SandboxUnavailableError: This Python has none, or one outside of the folders of libraries.
        """
        loader = _loader_of(self.python)
        try:
            place = f"{_SYSTEM}/{loader.relative_to('/usr')}"
        except ValueError as error:
            raise SandboxUnavailableError(f"the loader {loader} is not below /usr") from error
        # Its own first: this machine may have another Python of this version.
        folders = ("/runtime/python/lib", str(Path(place).parent), f"{_SYSTEM}/lib", f"{_SYSTEM}/lib64")
        return (place, "--inhibit-cache", "--library-path", ":".join(folders))


def find_runtime(files: Path) -> ProgramRuntime | RootRuntime:
    """Locate everything; nothing is imported.

    Args:
        files: The program, or the root folder.

    Raises:
        SandboxUnavailableError: A package is missing.
    """
    try:
        packages = runtime.find_packages(_PACKAGES)
    except SandboxUnavailableError as error:
        raise SandboxUnavailableError(
            f"{error.reason}; added engines need the extra grpc: pip install 'odf-node[grpc]'"
        ) from error
    ours = runtime.find_own_packages(__name__.partition(".")[0])
    if files.is_dir():
        return RootRuntime(root=files, packages=packages, ours=ours)
    return ProgramRuntime(program=files, packages=packages, ours=ours)


def _module_mount() -> Mount:
    return Mount(runtime.find_module_file(_MODULE), f"/runtime/site/{_MODULE}.py")


def _loader_of(program: Path) -> Path:
    """Read which loader a program of 64 bits asks for, and follow its links (elf(5))."""
    raw = program.read_bytes()
    table, size, count = *struct.unpack_from("<Q", raw, 32), *struct.unpack_from("<HH", raw, 54)
    for number in range(count):
        kind, _flags, position, _address, _physical, length = struct.unpack_from("<IIQQQQ", raw, table + number * size)
        if kind == _PT_INTERP:
            return Path(raw[position : position + length].rstrip(b"\0").decode()).resolve()
    raise SandboxUnavailableError(f"{program} names no loader, so it cannot run beside another root folder")


_PROGRAM = "odf_foreign.added.worker"


class AddedEngine:
    """See ``Engine``.

    Args:
        description: What is known of it.
        files: The program, or the root folder.
        cache: Folder for what can be made again; by default the user's cache.
    """

    capabilities = frozenset({Capability.TRANSFORM})
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
        fix = f"odf-node engine remove {self.name}@{self.description.digest}, and add it again"
        try:
            find_runtime(self.files)
            digest = self.digest()
        except EngineError as error:
            return [MachineNeed(what=what, is_there=False, found=str(error), fix=fix)]
        return [MachineNeed(what=what, is_there=True, found=f"{self.version}, added with digest {digest}", fix=fix)]

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
