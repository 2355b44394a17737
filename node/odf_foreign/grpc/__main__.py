"""``python -m odf_foreign.grpc``: run an installed engine as a server of ODF's engine contract.

Source: clauses GRPC-1, GRPC-5 and GRPC-11 of ``spec/plug-ins/engine-grpc.md``.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from concurrent.futures import Future
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from odf_engines.contract import EngineError, EngineMissingError, Limits
from odf_engines.engine import CallerConfinedEngine, Engine
from odf_engines.registry import get_engine, usable_engines
from odf_foreign.grpc.folders import SharedFolders
from odf_foreign.grpc.pool import SessionPool
from odf_foreign.grpc.service import EngineService, make_server

_PORT = 2884  # of the reference implementation; the text of the specification says 5544
_INPUTS = Path("/opt/engine/in")  # where the reference implementation mounts them
_OUTPUTS = Path("/opt/engine/out")
_MIB = 1024 * 1024


def main(words: list[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; returns the exit code."""
    arguments = _parser().parse_args(words)
    if find_spec("grpc") is None:
        print("the server needs grpcio: pip install 'odf-node[grpc]'", file=sys.stderr)
        return 2
    try:
        return _serve(_engine_of(arguments), arguments)
    except (EngineError, OSError) as error:
        print(f"odf_foreign.grpc: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    defaults = Limits()
    parser = argparse.ArgumentParser(
        prog="python -m odf_foreign.grpc",
        description="Run an engine for other ODF nodes: the gRPC service engine.Engine. Callers are not asked who they "
        "are, so let only your own node reach the port.",
    )
    parser.add_argument("--engine", default="spark", help="which of the installed ones (default: %(default)s)")
    parser.add_argument(
        "--isolation", choices=["sandbox", "caller"], default="sandbox",
        help="caller: this program has a container of its own, which cannot have a sandbox inside, so that the "
        "container is the sandbox (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--address", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--port", type=int, default=_PORT, help="0 for a free one (default: %(default)s)")
    parser.add_argument(
        "--read", type=Path, action="append", metavar="FOLDER",
        help=f"callers may name files in it; repeatable (default: {_INPUTS})",
    )  # fmt: skip
    parser.add_argument(
        "--write", type=Path, action="append", metavar="FOLDER",
        help=f"callers get results in it; repeatable (default: {_OUTPUTS})",
    )  # fmt: skip
    parser.add_argument("--workspace", type=Path, help="existing folder for files at work (default: a temporary one)")
    parser.add_argument(
        "--memory-mib", type=int, default=defaults.memory_bytes // _MIB, help="of the engine (default: %(default)s)"
    )
    parser.add_argument(
        "--wall-s", type=float, default=defaults.wall_s, help="for one request, in seconds (default: %(default)s)"
    )
    parser.add_argument("--ready-file", type=Path, help="gets the port as soon as requests are answered")
    return parser


def _engine_of(arguments: argparse.Namespace) -> Engine:
    if arguments.isolation == "sandbox":
        return get_engine(arguments.engine)
    engine = get_engine(arguments.engine)
    if not isinstance(engine, CallerConfinedEngine):
        able = [name for name, each in usable_engines().items() if isinstance(each, CallerConfinedEngine)]
        raise EngineMissingError(f"{arguments.engine} without a sandbox", able)
    return engine.confined_by_caller()


def _serve(engine: Engine, arguments: argparse.Namespace) -> int:
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    workspace = Path(tempfile.mkdtemp(prefix="odf-engine-", dir=arguments.workspace))
    limits = Limits(memory_bytes=arguments.memory_mib * _MIB, wall_s=arguments.wall_s)
    pool = SessionPool(engine, workspace, limits)
    try:
        folders = SharedFolders(arguments.read or [_INPUTS], arguments.write or [_OUTPUTS])
        # Before anybody can connect: an engine that cannot be isolated is no engine.
        pool.open().add_done_callback(partial(_report, stopped))
        server, port = make_server(EngineService(pool, folders), arguments.address, arguments.port)
        server.start()
        print(f"engine {engine.name} answers at {arguments.address}:{port}", file=sys.stderr, flush=True)
        if arguments.ready_file is not None:
            arguments.ready_file.write_text(str(port))
        stopped.wait()
        finished = server.stop(0)
        pool.close()
        finished.wait()
    finally:
        pool.close()
        shutil.rmtree(workspace, ignore_errors=True)
    return 0


def _report(stopped: threading.Event, start: Future[None]) -> None:
    if not stopped.is_set() and (error := start.exception()) is not None:
        print(f"odf_foreign.grpc: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
