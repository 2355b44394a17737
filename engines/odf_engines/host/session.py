"""A running guest in its sandbox, as the host sees it: sends requests, keeps limits, checks what comes back.

The session's folder below the workspace:

* ``etc``      names of the one user and the one host, shown to the sandbox
* ``in/<n>``   inputs of request n: links to, or copies of, the caller's files, shown read only
* ``out/<n>``  what request n writes; the only place on disk that the sandbox can write to
* ``done/<n>`` outputs after they were taken over and checked; the sandbox cannot see it

Source: clauses ENGINE-3 to ENGINE-6 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar

from odf_engines.confined.caller import CallerConfinedProcess
from odf_engines.confined.process import SandboxedProcess
from odf_engines.confined.program import ConfinedProgram, ReportedError
from odf_engines.confined.program import ProgramOutput as FoundAnswer
from odf_engines.contract import (
    Grade,
    IngestRequest,
    IngestResponse,
    Limits,
    PreparedRows,
    QueryRequest,
    QueryResponse,
    QueryTable,
    TransformRequest,
    TransformResponse,
)
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.ingest_receive import blame_plug_in, receive_converted, receive_ingest, receive_preprocessed
from odf_engines.host.messages import encode_message, error_from_fields
from odf_engines.host.output_reader import OutputReader
from odf_engines.host.outputs import OperationOutput, OutputFolder
from odf_engines.host.query_bounds import (
    blame_analysis,
    check_query_bounds,
    check_transform_bounds,
    limits_of_analysis,
)
from odf_engines.host.receive import receive_grade, receive_query, receive_transform
from odf_engines.host.runtime import Guest, confined_command
from odf_engines.host.step_parts import name_part
from odf_engines.sandbox.disk import remove_tree
from odf_engines.sandbox.layers import Layer, accepted_layers, missing_layers
from odf_engines.sandbox.profile import Mount, Profile, write_accounts
from odf_engines.sandbox.resources import kernel_limits
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary

_START_WALL_S = 180.0  # guess: the slowest starts in 2 to 6 s on an idle machine, in much more on one that swaps

_Response = TypeVar("_Response")


def is_worn(process: SandboxedProcess, fresh_bytes: int, limits: Limits) -> bool:
    """Say whether a process has used so much that the next request might reach a limit that is meant for one.

    Processor time adds up, and a guest may keep the memory of large requests: half of the time, or of the room that it
    had when it was fresh, is the next request's.
    """
    return process.spent_cpu_s > limits.cpu_s / 2 or process.held_bytes > (fresh_bytes + limits.memory_bytes) / 2


class HostSession:
    """See ``EngineSession``. The process starts with the first request.

    Args:
        guest: What the sandbox runs.
        workspace: Existing folder; the session makes one of its own in it.
        limits: Of the session.
        process: How the program is confined.
        has_filter: See ``Profile``.
    """

    folder: Path  # of the host; see the module's docstring

    def __init__(
        self,
        guest: Guest,
        workspace: Path,
        limits: Limits,
        *,
        process: type[SandboxedProcess] = SandboxedProcess,
        has_filter: bool = True,
    ) -> None:
        self.check_confinement(guest, process, has_filter=has_filter)
        self.guest = guest
        self._process_type = process
        self._has_filter = has_filter
        self._limits = limits
        self._number, self._file_numbers = 0, count()
        self._process: SandboxedProcess | None = None
        self._fresh_bytes, self._is_stopped = 0, False
        self.on_progress: Callable[[int], None] = lambda _count: None  # hears how often the engine said that it works
        self.folder = Path(tempfile.mkdtemp(prefix=f"{guest.name}-", dir=workspace))
        for name in ("etc", "in", "out", "done"):
            (self.folder / name).mkdir()
        # Where the caller confines this whole program, it confines the reading of outputs too.
        self._reader = None
        if process.is_sandbox:
            self._reader = OutputReader(limits)

    def check_confinement(self, guest: Guest, process: type[SandboxedProcess], *, has_filter: bool) -> None:
        """Reject a session that is confined by less than its guest asks for; ours take what the operator allows.

        Raises:
            EngineError: It is.
        """

    def start(self) -> None:
        """See ``EngineSession``."""
        self._running_process()

    def transform(self, request: TransformRequest) -> TransformResponse:
        """See ``EngineSession``."""
        check_transform_bounds(request.transform, has_escapes=self.guest.has_escapes)
        receive = partial(receive_transform, counts_rows=self.guest.counts_rows)
        return self._ask("transform", request, request.limits, receive, partial(name_part, request))

    def ingest(self, request: IngestRequest) -> IngestResponse:
        """See ``EngineSession``."""
        if request.preprocess is not None and request.prepared is None:
            check_transform_bounds(request.preprocess, has_escapes=self.guest.has_escapes)
        blame = partial(blame_plug_in, request)
        return self._ask("ingest", request, request.limits, receive_ingest, blame)

    def convert(self, request: IngestRequest) -> PreparedRows:
        """See ``EngineSession``."""
        blame = partial(blame_plug_in, request)
        return self._ask("convert", request, request.limits, receive_converted, blame)

    def preprocess(self, transform: TransformSql, rows: Path) -> QueryResponse:
        """See ``EngineSession``."""
        check_transform_bounds(transform, has_escapes=self.guest.has_escapes)
        receive = partial(receive_preprocessed, limits=self._limits)
        return self._ask("preprocess", {"transform": transform, "rows": rows}, self._limits, receive)

    def query(self, request: QueryRequest) -> QueryResponse:
        """See ``EngineSession``."""
        check_query_bounds(request.sql, has_escapes=self.guest.has_escapes)
        return self._ask("query", request, request.limits, receive_query)

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        """See ``EngineSession``."""
        check_transform_bounds(transform, has_escapes=self.guest.has_escapes)
        request = {"transform": transform, "inputs": tuple(inputs), "vocabulary": vocabulary or Vocabulary()}
        limits = limits_of_analysis(self._limits)
        return self._ask("check", request, limits, receive_grade, blame_analysis)

    def end_process(self) -> None:
        """End the process at once and keep the folder; nothing if it does not run.

        What it wrote was taken over with each answer, so nothing of value is left in it.
        """
        if self._reader is not None:
            self._reader.close()
        self._discard()

    def let_process_end(self) -> None:
        """Let the process end by itself, which may take half a second, for what it writes at its end, which stays."""
        if self._process is not None:
            self._process.close()
            self._process = None
        if self._reader is not None:
            self._reader.close()

    def stop(self) -> None:
        """See ``EngineSession``."""
        self._is_stopped = True
        for each in (self._process, self._reader):
            if each is not None:
                each.stop()

    def close(self) -> None:
        """See ``EngineSession``."""
        self.end_process()
        remove_tree(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(
        self,
        operation: str,
        request: Any,
        limits: Limits,
        receive: Callable[[Any, OperationOutput, OutputFolder], _Response],
        blame: Callable[[Path, EngineError], EngineError] = lambda _folder, error: error,
    ) -> _Response:
        """Send a request and give its answer to ``receive``, which trusts nothing in it.

        Where it ends at a limit, or the process ends, ``blame`` says whose fault it was, from what it wrote before.
        """
        process = self._running_process(writes=operation != "check")
        self._number, self._file_numbers = self._number + 1, count()
        number = str(self._number)
        out = self.folder / "out" / number
        for name in ("in", "done"):
            (self.folder / name / number).mkdir()
        try:
            wall_s = min(limits.wall_s, self._limits.wall_s)
            body = encode_message(request, self.show_input).encode()
            try:
                found = ConfinedProgram(process).ask(
                    operation, {"number": self._number}, wall_s=wall_s, body=body, on_progress=self.on_progress
                )
            except ReportedError as reported:
                error = self._error_of(reported, process)
                error = blame(out, error) if isinstance(error, LimitExceededError) else error
            else:
                answer = self._answer_of(found, process)
                return receive(request, answer, OutputFolder(out, self.folder / "done" / number, limits, self._reader))
        except (EngineFailureError, LimitExceededError) as failure:
            # A process that broke the contract or went too far is not asked again.
            process.kill()
            blamed = blame(out, failure)
            self._discard()
            if blamed is not failure:
                raise blamed from failure
            raise
        finally:
            for name in ("in", "out"):
                remove_tree(self.folder / name / number)
        if not process.is_running:
            self._discard()
        raise error  # what a sound process reports about a query is no reason to end it

    def _error_of(self, reported: ReportedError, process: SandboxedProcess) -> EngineError:
        error = error_from_fields(reported.fields)
        if reported.is_last:
            process.kill()
        if isinstance(error, EngineFailureError):
            error.log = process.log
        return error

    def _answer_of(self, found: FoundAnswer, process: SandboxedProcess) -> OperationOutput:
        match found.header:
            case {"seconds": float() as seconds, "result": result}:
                return OperationOutput(result, seconds)
        raise EngineFailureError("an answer has neither result nor error", log=process.log)

    def show_input(self, path: Path) -> str:
        """Put a file of the caller's where the sandbox can read it; return its path there."""
        return f"/exchange/in/{self.link_input(path).relative_to(self.folder / 'in')}"

    def link_input(self, path: Path, name: str | None = None) -> Path:
        """Put a file of the caller's into the folder of the present request.

        A link costs nothing and cannot be written through, since the sandbox mounts the folder read only.

        Args:
            path: The file.
            name: What it is called there; None for a number.

        Returns:
            Its path on the host.
        """
        folder = self.folder / "in" / str(self._number)
        shown = folder / (name or f"{next(self._file_numbers)}{path.suffix}")
        try:
            os.link(path.resolve(strict=True), shown)
        except FileExistsError:
            pass  # the same slice, for two inputs that are one dataset
        except OSError:
            shutil.copyfile(path, shown)
        return shown

    def _running_process(self, *, writes: bool = False) -> SandboxedProcess:
        """Return the process, ready to be asked.

        Args:
            writes: Whether the next request leaves files; then what reads them starts meanwhile.
        """
        if self._process is not None and not self._process.is_running:
            self._discard()
        if self._process is not None and is_worn(self._process, self._fresh_bytes, self._limits):
            self.end_process()
        if self._process is None:
            self._start_process(writes=writes)
        elif writes:
            self._start_reader()
        assert self._process is not None
        return self._process

    def _start_process(self, *, writes: bool) -> None:
        arguments = {
            "limits": kernel_limits(
                memory_bytes=self._limits.memory_bytes,
                cpu_s=self._limits.cpu_s,
                file_bytes=self._limits.output_bytes,
                processes=self._limits.processes,
            ),
            "memory_bytes": self._limits.memory_bytes,
            **self.guest.arguments,
        }
        program = [*self.guest.launcher, *confined_command(self.guest.program, arguments)]
        process = self._process_type(self.profile(), program, self._limits, writable=[self.folder / "out"])
        # Before it answers: whoever stops the session while it starts must find it.
        self._process = process
        try:
            if writes:
                self._start_reader()
            self._wait_until_ready(process)
            self._fresh_bytes = process.held_bytes
        except EngineError:
            self._discard()
            raise

    def _start_reader(self) -> None:
        if self._reader is not None:
            self._reader.start()

    def _wait_until_ready(self, process: SandboxedProcess) -> None:
        if self._is_stopped:
            raise EngineFailureError("the engine was stopped")
        try:
            ConfinedProgram(process).wait_until_ready(_START_WALL_S)
        except ReportedError as reported:
            raise self._error_of(reported, process) from None

    def profile(self) -> Profile:
        """Return what the sandbox of this session contains."""
        mounts = [
            *self.guest.runtime.mounts(),
            *write_accounts(self.folder / "etc"),
            Mount(self.folder / "in", "/exchange/in"),
            Mount(self.folder / "out", "/exchange/out", is_writable=True),
            *self.guest.mounts,
        ]
        return Profile(
            mounts=tuple(mounts),
            links=self.guest.runtime.links(),
            memory_folders={"/tmp": self.guest.temporary_bytes, "/scratch": self.guest.scratch_bytes},  # noqa: S108 - inside the sandbox
            environment={
                "HOME": "/scratch",
                "LANG": "C.UTF-8",
                "LD_LIBRARY_PATH": "/runtime/python/lib",
                "MALLOC_ARENA_MAX": "2",
                "TZ": "UTC",
                "USER": "engine",
                **self.guest.environment,
            },
            folder="/scratch",
            has_filter=self._has_filter,
        )

    def _discard(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None
        # What a guest kept there between requests, or left where it should not.
        with contextlib.suppress(FileNotFoundError):  # closed already
            for kept in (self.folder / "out").iterdir():
                remove_tree(kept)
                with contextlib.suppress(OSError):
                    kept.unlink()


def open_session(
    make_guest: Callable[[], Guest],
    workspace: Path,
    limits: Limits,
    *,
    is_confined_by_caller: bool = False,
    session: type[HostSession] = HostSession,
) -> HostSession:
    """Open a session in the strictest sandbox that this machine has and its operator allows to do without.

    Args:
        make_guest: Gives what the sandbox runs; not called where there is no sandbox.
        workspace: See ``HostSession``.
        limits: See ``HostSession``.
        is_confined_by_caller: Whether this whole program runs in a container of its own, which is the sandbox then.
        session: What kind of session it is.

    Raises:
        SandboxUnavailableError: A layer is missing that the operator does not do without.
    """
    missing = frozenset({Layer.NAMESPACES})
    if not is_confined_by_caller:
        missing = missing_layers(accepted_layers(os.environ))
    process = CallerConfinedProcess if Layer.NAMESPACES in missing else SandboxedProcess
    return session(make_guest(), workspace, limits, process=process, has_filter=Layer.FILTER not in missing)
