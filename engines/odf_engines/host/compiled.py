"""Compiled Python for the sandbox, which can keep none itself: there every start would compile hundreds of modules.

Installers do not compile packages, and nobody but the sandbox imports most of them. So what engines load is asked for
once, in the sandbox, and compiled here, from the files of this machine, into one folder that every sandbox is shown
read only. Python takes a compiled module only with the size and time of change of its source, and else the source: the
folder can be old, incomplete or gone, which costs time and nothing else. So it is no part of the digest.

Source: clause ENGINE-20 in ``spec/extensions/engine-contract.md``.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError
from odf_engines.host.cache_shelf import CacheShelf
from odf_engines.host.own_code import own_modules
from odf_engines.host.runtime import Runtime
from odf_engines.sandbox.process import SandboxedProcess
from odf_engines.sandbox.profile import Mount, Profile

__all__ = ["compiled_mounts", "find_compiled", "make_compiled", "python_command"]

_PLACE = "/runtime/compiled"
_OURS = "/runtime/ours"

# What runs beside every guest, in a sandbox of its own.
_READER = "odf_engines.host.output_program"
_LIMITS = Limits(wall_s=120.0, memory_bytes=1024**3)  # guess: takes two seconds and 200 MB
_HEADER_BYTES = 16  # magic number, flags, time of change, size: PEP 552


def python_command(compiled: Path | None, program: str) -> list[str]:
    """Return how a module of ours is started inside the sandbox; nothing of the machine's Python settings counts."""
    prefix = [] if compiled is None else ["-X", f"pycache_prefix={_PLACE}"]
    return ["/runtime/python/bin/python3", "-I", "-S", "-B", *prefix, f"{_OURS}/{program.replace('.', '/')}.py"]


def compiled_mounts(compiled: Path | None) -> list[Mount]:
    """Return how the sandbox shows the folder."""
    return [] if compiled is None else [Mount(compiled, _PLACE)]


def find_compiled(runtime: Runtime, cache: Path) -> Path | None:
    """Return the folder for this engine if there is one."""
    return _shelf(cache).find(_name(runtime), is_good=Path.is_dir)


def make_compiled(runtime: Runtime, cache: Path, programs: Sequence[str], preloaded: Sequence[str] = ()) -> Path:
    """Return the folder, making it if need be, anew where sources changed; processes that want it make it once.

    Args:
        runtime: What is installed.
        cache: Folder that has the shelf.
        programs: Modules of ours that a guest starts in its sandboxes.
        preloaded: Other modules that they load in the end.

    Raises:
        SandboxUnavailableError, EngineError: It cannot be made; the engine starts without one, only slower.
    """
    ours = {PurePosixPath(_OURS, place) for place in own_modules([*programs, _READER], dict(runtime.ours), cache)}
    return _shelf(cache).make(
        _name(runtime),
        lambda folder: _make(runtime, ours, preloaded, folder / "made"),
        is_good=lambda folder: _is_current(runtime, ours, folder),
    )


def _shelf(cache: Path) -> CacheShelf:
    return CacheShelf(cache / "compiled")


def _name(runtime: Runtime) -> str:
    places = "\n".join(f"{mount.target} {mount.source}" for mount in runtime.mounts())
    return hashlib.sha3_256(f"{sys.version}\n{places}".encode()).hexdigest()[:32]


def _make(runtime: Runtime, ours: Iterable[PurePosixPath], preloaded: Sequence[str], folder: Path) -> Path:
    import py_compile

    # A module whose source is no file of the engine's is none of ours to compile.
    for place in _listed(runtime, ours, preloaded):
        if (source := _source_of(runtime, PurePosixPath(place))) is not None:
            compiled = folder / _compiled_name(PurePosixPath(place))
            compiled.parent.mkdir(parents=True, exist_ok=True)
            py_compile.compile(
                str(source), cfile=str(compiled), dfile=place, doraise=True, optimize=0,
                invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP,
            )  # fmt: skip
    return folder


def _listed(runtime: Runtime, ours: Iterable[PurePosixPath], preloaded: Sequence[str]) -> Sequence[str]:
    """Return the files of all modules that are loaded once everything of ours, and what it preloads, is."""
    modules = sorted({_module_name(place) for place in ours})
    profile = Profile(
        mounts=runtime.mounts(),
        links=runtime.links(),
        environment={"LANG": "C.UTF-8", "LD_LIBRARY_PATH": "/runtime/python/lib"},
    )
    with SandboxedProcess(
        profile, [*python_command(None, "odf_engines.host.module_list"), *preloaded, *modules], _LIMITS
    ) as process:
        try:
            found = json.loads(process.receive(_LIMITS.wall_s))
        except ValueError as error:
            raise EngineFailureError("the list of Python modules is not JSON", log=process.log) from error
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise EngineFailureError("the list of Python modules is not a list of texts")
    return found


def _module_name(place: PurePosixPath) -> str:
    module = place.relative_to(_OURS)
    return ".".join((module.parent if module.name == "__init__.py" else module.with_suffix("")).parts)


def _source_of(runtime: Runtime, place: PurePosixPath) -> Path | None:
    """Return the file of this machine that the sandbox shows at a place, None if it shows none there."""
    if ".." in place.parts:
        return None
    for mount in runtime.mounts():
        if place.is_relative_to(mount.target):
            source = mount.source / place.relative_to(mount.target)
            return source if source.is_file() else None
    return None


def _compiled_name(place: PurePosixPath) -> PurePosixPath:
    """Return where Python looks for it below the folder: PEP 304 as ``sys.pycache_prefix`` has it."""
    return place.relative_to("/").with_name(f"{place.stem}.{sys.implementation.cache_tag}.pyc")


def _is_current(runtime: Runtime, ours: Iterable[PurePosixPath], folder: Path) -> bool:
    """Whether everything of ours is compiled, and every compiled module still fits its source."""
    return all((folder / _compiled_name(place)).is_file() for place in ours) and all(
        _fits(runtime, folder, file) for file in folder.rglob("*.pyc")
    )


def _fits(runtime: Runtime, folder: Path, file: Path) -> bool:
    place = PurePosixPath("/", *file.relative_to(folder).parts)
    source = _source_of(runtime, place.with_name(f"{place.name.split('.')[0]}.py"))
    if source is None:
        return False
    with file.open("rb") as opened:
        header = opened.read(_HEADER_BYTES)
    found = source.stat()
    words = [int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF]
    return header[8:] == b"".join(word.to_bytes(4, "little") for word in words)
