"""Running an engine where a caller has confined the whole program already and no sandbox can be made inside.

Container runtimes cover parts of ``/proc`` and take capabilities away, which leaves no way to make another sandbox
inside. Then the container is the sandbox. The engine still sees its files at their usual paths, because links to them
are put there for as long as it runs; it has no inherited environment, the kernel's limits, and the watch. It is not
kept from the network or from other files of the container: that is the caller's part.

Source: clause GRPC-11 of ``spec/plug-ins/engine-grpc.md``; clauses SANDBOX-7 to SANDBOX-10.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from odf_engines.confined.process import SandboxedProcess
from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox.profile import Profile

# Folders of the container itself; what the profile shows below them is there already.
_OF_THE_CONTAINER = ("/etc/", "/usr/", "/tmp")  # noqa: S108 - names of folders, not a place to write to


class CallerConfinedProcess(SandboxedProcess):
    """See ``SandboxedProcess``; needs a file system in which the folders of the profile can be made.

    Raises:
        SandboxUnavailableError: They cannot, or something is there already.
    """

    is_sandbox = False

    def _start(self, profile: Profile, program: Sequence[str]) -> "subprocess.Popen[bytes]":
        self._made: list[Path] = []
        self._scratch = [Path(name) for name in profile.memory_folders if not name.startswith(_OF_THE_CONTAINER)]
        try:
            for folder in self._scratch:
                self._make_folder(folder)
            for mount in profile.mounts:
                if not mount.target.startswith(_OF_THE_CONTAINER):
                    self._make_folder(Path(mount.target).parent)
                    Path(mount.target).symlink_to(mount.source)
                    self._made.append(Path(mount.target))
            return self._popen(program, profile, env=dict(profile.environment), cwd=profile.folder)
        except OSError as error:
            self._clear()
            reason = f"a container of its own is needed, and {error.filename or program[0]}: {error.strerror}"
            raise SandboxUnavailableError(reason) from error

    def kill(self) -> None:
        """See ``SandboxedProcess``; only processes of one group end, the rest with the container."""
        super().kill()
        self._clear()

    def _make_folder(self, folder: Path) -> None:
        for each in (*reversed(folder.parents), folder):
            with contextlib.suppress(FileExistsError):
                each.mkdir(mode=0o700)
                self._made.append(each)

    def _clear(self) -> None:
        while self._made:
            path = self._made.pop()
            with contextlib.suppress(OSError):
                if path.is_symlink():
                    path.unlink()
                elif path in self._scratch:
                    shutil.rmtree(path)
                else:
                    path.rmdir()
