"""What an engine brings into the sandbox: its program and what that runs on.

The host knows of an engine what stands here and nothing else. How a guest's program behaves is in ``worker``.

Source: clauses ENGINE-3, ENGINE-4 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from odf_engines.host.runtime import Runtime
from odf_engines.sandbox.profile import Mount

_MIB = 1024 * 1024
_SCRATCH_BYTES = 64 * _MIB  # guess: connection files and the like; what is large is written to the output folder
_TEMPORARY_BYTES = 128 * _MIB  # guess: native libraries that archives unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """One engine's part of a session.

    Attributes:
        name: Of the engine, for names of folders.
        runtime: What its program runs on.
        program: Module of ours that is started in the sandbox. Its one argument is JSON: ``limits`` for the kernel,
            ``memory_bytes`` of the session, and ``arguments``.
        launcher: What stands before the command of the program, where Python cannot be started as it is.
        arguments: Plain values for the program.
        environment: Variables beside those that every guest has.
        mounts: What it is shown beside its runtime.
        counts_rows: Whether it says of every input which rows it read (ENGINE-27).
        has_escapes: Whether a backslash in a quoted text of its SQL takes its meaning from the next character.
        scratch_bytes: Of its home folder, which lives in memory.
        temporary_bytes: Of its folder for temporary files, which lives in memory.
    """

    name: str
    runtime: Runtime
    program: str
    launcher: tuple[str, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    counts_rows: bool = True
    has_escapes: bool = False
    scratch_bytes: int = _SCRATCH_BYTES
    temporary_bytes: int = _TEMPORARY_BYTES
