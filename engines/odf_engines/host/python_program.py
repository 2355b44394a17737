"""Programs in Python for the sandbox: how they are started, and compiled beforehand.

The sandbox can keep no compiled Python, so every start would compile hundreds of modules again; not all installers
compile what they install. What is compiled lies where Python keeps it, beside the sources, and is taken only with the
size and time of change of its source. So it is no part of the digest.
"""

import compileall
from pathlib import Path

from odf_engines.host.runtime import Runtime
from odf_engines.sandbox.profile import Mount, Profile

_OURS = Path("/runtime/ours")


def python_command(program: str) -> list[str]:
    """Return how a module of ours is started inside the sandbox; nothing of the machine's Python settings counts."""
    return ["/runtime/python/bin/python3", "-I", "-S", "-B", f"{_OURS / program.replace('.', '/')}.py"]


def profile_of_reader(runtime: Runtime, given: Mount, *, has_filter: bool) -> Profile:
    """Return what the sandbox of a program of ours contains that reads what others wrote, and writes no file.

    Args:
        runtime: Of the program.
        given: What it reads.
        has_filter: See ``Profile``.
    """
    return Profile(
        mounts=(*runtime.mounts(), given),
        links=runtime.links(),
        environment={
            # Other allocators of Arrow's reserve more memory than they use, which the limit would count.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "LANG": "C.UTF-8",
            "LD_LIBRARY_PATH": "/runtime/python/lib",
            "MALLOC_ARENA_MAX": "2",
            "OMP_NUM_THREADS": "1",
            "TZ": "UTC",
        },
        has_filter=has_filter,
    )


def compile_packages(runtime: Runtime) -> None:
    """Compile what a guest can import, where that is not done yet: seconds once, then a look at each file.

    Folders that cannot be written are left as they are: their modules are compiled at every start.
    """
    for _, folder in (*runtime.packages, *runtime.ours):
        compileall.compile_dir(folder, quiet=2)
