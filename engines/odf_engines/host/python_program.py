"""Programs in Python for the sandbox: how they are started, and compiled beforehand.

The sandbox can keep no compiled Python, so every start would compile hundreds of modules again; not all installers
compile what they install. What is compiled lies where Python keeps it, beside the sources, and is taken only with the
size and time of change of its source. So it is no part of the digest.
"""

import compileall
from pathlib import Path

from odf_engines.host.runtime import Runtime

_OURS = Path("/runtime/ours")


def python_command(program: str) -> list[str]:
    """Return how a module of ours is started inside the sandbox; nothing of the machine's Python settings counts."""
    return ["/runtime/python/bin/python3", "-I", "-S", "-B", f"{_OURS / program.replace('.', '/')}.py"]


def compile_packages(runtime: Runtime) -> None:
    """Compile what a guest can import, where that is not done yet: seconds once, then a look at each file.

    Folders that cannot be written are left as they are: their modules are compiled at every start.
    """
    for _, folder in (*runtime.packages, *runtime.ours):
        compileall.compile_dir(folder, quiet=2)
