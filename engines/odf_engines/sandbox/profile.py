"""What a sandbox contains, and the command that builds it.

Source: clauses SANDBOX-3 to SANDBOX-5 in ``spec/extensions/sandbox.md``.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odf_engines.sandbox.bubblewrap import CGROUP_NAMESPACE, HOST_NAME, NAMESPACES, NETWORK_NAMESPACE, Bubblewrap

SANDBOX_UID = 65534  # nobody, by convention of Linux distributions

# Not zero: a shared view of it is memory that no count of resident memory sees.
_DEVICES = ("null", "full", "random", "urandom")
_DEVICE_FOLDER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the host shown at a path of the sandbox."""

    source: Path
    target: str
    is_writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a sandbox contains.

    Attributes:
        mounts: In this order; later ones may lie inside earlier ones.
        links: Symbolic links, target by place.
        memory_folders: Writable folders that live in memory, with their size in bytes.
        environment: All of it; nothing is inherited.
        folder: Where the program starts.
        has_filter: False only where there can be none and the operator does without.
        has_network: Whether the program shares the network of this machine, as the driver of a cluster has to, and an
            image that the operator lets fetch from it.
        holds_files: Whether the program is handed open files of the host, to read: then it has no ``/proc``, through
            which a file could be opened again, and the filter denies what changes a file by its descriptor.
    """

    mounts: tuple[Mount, ...]
    links: Mapping[str, str] = field(default_factory=dict)
    memory_folders: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    has_filter: bool = True
    has_network: bool = False
    holds_files: bool = False


def build_command(
    bubblewrap: Bubblewrap,
    profile: Profile,
    program: Sequence[str],
    *,
    filter_descriptor: int | None,
    environment_descriptor: int | None = None,
) -> list[str]:
    """Return the command line that runs ``program`` in a sandbox of this profile.

    Args:
        bubblewrap: What builds the sandbox.
        profile: What is in it.
        program: Path inside the sandbox, and arguments.
        filter_descriptor: Inherited by the command; from it the filter of system calls is read. None only where the
            operator does without.
        environment_descriptor: Inherited by the command, from ``open_environment``: more of the environment, which
            other users of this machine do not see, as they see a command line.
    """
    namespaces = [each for each in NAMESPACES if not (profile.has_network and each == NETWORK_NAMESPACE)]
    command = [
        str(bubblewrap.path), *namespaces, *([CGROUP_NAMESPACE] if bubblewrap.has_cgroup_namespace else []),
        "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL",
        "--uid", str(SANDBOX_UID), "--gid", str(SANDBOX_UID), "--hostname", HOST_NAME,
        *([] if filter_descriptor is None else ["--seccomp", str(filter_descriptor)]),
        *([] if profile.holds_files else ["--proc", "/proc"]),
        "--perms", "0755", "--size", str(_DEVICE_FOLDER_BYTES), "--tmpfs", "/dev",
    ]  # fmt: skip
    for device in _DEVICES:
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    for path, size_bytes in profile.memory_folders.items():
        command += ["--perms", "0700", "--size", str(size_bytes), "--tmpfs", path]
    for mount in profile.mounts:
        command += ["--bind" if mount.is_writable else "--ro-bind", str(mount.source), mount.target]
    for place, target in profile.links.items():
        command += ["--symlink", target, place]
    for name, value in profile.environment.items():
        command += ["--setenv", name, value]
    if environment_descriptor is not None:
        command += ["--args", str(environment_descriptor)]
    # The root and /dev are file systems in memory without a useful limit, so nothing may be written there.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    # For a node that runs as root, settings of the whole machine below /proc/sys belong to the user inside, and
    # bubblewrap's own cover over them is left out because their folder looks unwritable.
    command += [] if profile.holds_files else ["--remount-ro", "/proc"]
    return [*command, "--chdir", profile.folder, "--", *program]


def open_environment(environment: Mapping[str, str]) -> int:
    """Return a descriptor from which bubblewrap reads variables; the caller closes it.

    Raises:
        ValueError: A name or value would be read as something else.
    """
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ValueError(f"variable {name[:80]!r}: a name without '=', and texts without U+0000, are needed")
    words = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    descriptor = os.memfd_create("environment")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def write_accounts(folder: Path) -> tuple[Mount, ...]:
    """Write the files that name the one user and the one host, for programs that insist on names.

    Args:
        folder: Existing folder of the host; the files stay as long as the sandbox runs.
    """
    texts = {
        "passwd": f"engine:x:{SANDBOX_UID}:{SANDBOX_UID}::/scratch:/bin/false\n",
        "group": f"engine:x:{SANDBOX_UID}:\n",
        "hosts": f"127.0.0.1 localhost {HOST_NAME}\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return tuple(Mount(folder / name, f"/etc/{name}") for name in texts)


MADE_ANEW: Final = frozenset({"dev", "proc", "sys", "tmp"})
"""Folders at the top that every sandbox makes for itself, or does without, whatever an archive has there."""


def show_root(root: Path, own: Collection[str] = ()) -> tuple[tuple[Mount, ...], dict[str, str]]:
    """Return what is at the top of a root folder as mounts, read only, and links, target by place."""
    shown = [path for path in sorted(root.iterdir()) if path.name not in MADE_ANEW | frozenset(own)]
    mounts = tuple(Mount(path, f"/{path.name}") for path in shown if not path.is_symlink())
    return mounts, {f"/{path.name}": str(path.readlink()) for path in shown if path.is_symlink()}
