"""Reading what others wrote in a sandbox of its own, so that what a hostile file costs, or breaks, stays there.

The reader of outputs is the node's own program, not the engine's: it shares nothing with the engine but the files that
were taken over, which it can only read.

Source: clause ENGINE-19 in ``spec/extensions/engine-contract.md``; SANDBOX-11.
"""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.messages import error_from_fields
from odf_engines.host.output_checks import OPERATIONS, RowsCheck, RowsFound, SizeCheck
from odf_engines.host.parts import receive_parts
from odf_engines.host.runtime import confined_command, find_runtime
from odf_engines.sandbox.process import SandboxedProcess
from odf_engines.sandbox.profile import Mount, Profile
from odf_engines.sandbox.resources import kernel_limits
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    import pyarrow as pa

_PACKAGES = ("msgspec", "numpy", "pyarrow")


def profile_of_reader(packages: tuple[str, ...], *given: Mount, has_filter: bool) -> Profile:
    """Return what the sandbox of a program of ours contains that reads what others wrote, and writes no file.

    Args:
        packages: That it imports.
        given: What it reads, and further packages.
        has_filter: See ``Profile``.
    """
    runtime = find_runtime(packages)
    return Profile(
        mounts=(*runtime.mounts(), *given),
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


def start_reader(program: str, profile: Profile, limits: Limits) -> SandboxedProcess:
    """Start such a program, which is told its ``limits`` for the kernel and ``memory_bytes``; do not wait for it."""
    kernel = kernel_limits(
        memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s, file_bytes=0, processes=limits.processes
    )
    # Not the address space, which Arrow reserves without using it.
    arguments = {"limits": {**kernel, "RLIMIT_DATA": limits.memory_bytes}, "memory_bytes": limits.memory_bytes}
    return SandboxedProcess(profile, confined_command(program, arguments), replace(limits, output_bytes=0))


class OutputReader:
    """One process, started with the first file or by ``start``, and replaced after a file that was too much for it.

    Args:
        folder: Holds every file that is read; shown read only.
        limits: ``memory_bytes`` is what reading may take, ``cpu_s`` and ``processes`` as for an engine.
        has_filter: See ``Profile``.
    """

    def __init__(self, folder: Path, limits: Limits, *, has_filter: bool = True) -> None:
        self._folder = folder
        self._limits = limits
        self._has_filter = has_filter
        self._process: SandboxedProcess | None = None

    def start(self) -> None:
        """Start the process and do not wait for it."""
        self._running()

    def check(self, path: Path, check: RowsCheck | SizeCheck, *, wall_s: float) -> RowsFound:
        """Run a check; see ``OutputFolder.check``."""
        return _found_in(self._ask(path, _fields_of(check), wall_s))

    def copy(self, path: Path, target: BinaryIO, most: int | None, *, wall_s: float) -> None:
        """Copy rows; see ``OutputFolder.copy``."""
        match self._ask(path, {"check": "copy", "most": most}, wall_s, target):
            case {"copied": True}:
                return
            case {"error": fields}:
                raise error_from_fields(fields)
        raise EngineFailureError("output could not be read: no answer that makes sense")

    def _ask(self, path: Path, fields: dict[str, Any], wall_s: float, target: BinaryIO | None = None) -> Any:
        request = {"path": f"/exchange/done/{path.relative_to(self._folder)}", **fields}
        try:
            process = self._running()
            process.send(json.dumps(request).encode(), wall_s)
            return receive_parts(process, wall_s, target, most_bytes=self._limits.decoded_bytes)
        except EngineFailureError as error:
            self.close()
            raise EngineFailureError(f"output could not be read: {error.message}", log=error.log) from error
        except LimitExceededError as error:
            self.close()
            raise LimitExceededError(
                error.limit, allowed=error.allowed, found=error.found, where="reading the output"
            ) from error
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            self.close()
            raise EngineFailureError("output could not be read: no answer that makes sense") from error
        except BaseException:
            self.close()  # the rest of its answer would be taken for the next one
            raise

    def stop(self) -> None:
        """End the process at once and do not wait; from any thread."""
        if (process := self._process) is not None:
            process.stop()

    def close(self) -> None:
        """End the process; safe to repeat."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _running(self) -> SandboxedProcess:
        process = self._process
        if process is not None and (not process.is_running or process.spent_cpu_s > self._limits.cpu_s / 2):
            self.close()
        if self._process is None:
            self._process = start_reader("odf_engines.host.output_program", self._profile(), self._limits)
        return self._process

    def _profile(self) -> Profile:
        given = Mount(self._folder, "/exchange/done")
        return profile_of_reader(_PACKAGES, given, has_filter=self._has_filter)


def _found_in(answer: Any) -> RowsFound:
    match answer:
        case {"error": fields}:
            raise error_from_fields(fields)
        case {"hash": str() | None as text, "operations": [*counts]} if len(counts) == OPERATIONS:
            if all(type(count) is int and count >= 0 for count in counts):
                try:
                    return RowsFound(None if text is None else Multihash.parse(text), tuple(counts))
                except MalformedError as error:
                    raise EngineFailureError("output could not be read: no answer that makes sense") from error
    raise EngineFailureError("output could not be read: no answer that makes sense")


def _fields_of(check: RowsCheck | SizeCheck) -> dict[str, Any]:
    if isinstance(check, SizeCheck):
        schema = None if check.schema is None else _text_of(check.schema)
        bounds = {"most_decoded_bytes": check.most_decoded_bytes, "rows": check.rows}
        return {"check": "size", "schema": schema, **bounds}
    return {
        "check": "rows",
        "schema": _text_of(check.schema),
        "vocabulary": check.vocabulary.columns,
        "interval": [check.interval.start, check.interval.end],
        "system_time_ms": check.system_time_ms,
        "most_rows": check.most_rows,
        "most_decoded_bytes": check.most_decoded_bytes,
    }


def _text_of(schema: "pa.Schema") -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")
