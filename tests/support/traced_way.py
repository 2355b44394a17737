"""Runs one command of the node in this process and counts the modules and processes that it goes through.

Everything is imported before, so that only code that runs counts: not the modules that a way could have used.

    python -m support.traced_way COMMAND...                 a command from its beginning to its end
    python -m support.traced_way --serving PATH serve ...   what a running daemon does for one GET of PATH

The last line on standard output is JSON: ``modules`` of the packages ``odf_*``, and ``processes`` by program.
"""

import importlib
import json
import pkgutil
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

READY_S = 120  # guess: a daemon on a machine that is slow and busy
OURS = re.compile(r"/(odf_\w+)/([\w/]+)\.py$")
NEEDS_AN_ENGINE = re.compile(r"^odf_engines\.(grpc|spark)\b|^odf_spark\b|__main__$|\.worker$|\.program$")


class Trace:
    """What ran while it was open."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.processes: list[str] = []
        self._is_open = False
        sys.addaudithook(self._note_event)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Note what runs, in this thread and those that begin from now on."""
        self._is_open = True
        threading.setprofile(self._note_call)
        sys.setprofile(self._note_call)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self._is_open = False

    def resume(self, is_open: bool) -> None:
        """Note calls from now on, or no more; the threads are watched either way."""
        self._is_open = is_open

    def _note_call(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self._is_open and event == "call":
            found = OURS.search(frame.f_code.co_filename)
            if found and frame.f_code.co_name != "<module>":
                self.modules.add(f"{found[1]}.{found[2].replace('/', '.')}")

    def _note_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_open and event in {"subprocess.Popen", "os.posix_spawn"}:
            self.processes.append(Path(str(arguments[0])).name)

    def as_json(self) -> str:
        """Describe it in one line."""
        return json.dumps({"modules": sorted(self.modules), "processes": self.processes})


def import_everything() -> None:
    """Import all modules that the host may use; those that only run in a sandbox are left out."""
    packages = sorted({module.name for module in pkgutil.iter_modules() if module.name.startswith("odf_")})
    for package in packages:
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not NEEDS_AN_ENGINE.search(module.name):
                importlib.import_module(module.name)


def ask_once(trace: Trace, path: str, ready: threading.Event, port: list[int]) -> None:
    """Ask the daemon of this process twice, and note the second time; then end it."""
    import _thread

    if ready.wait(READY_S):
        url = f"http://127.0.0.1:{port[0]}{path}"
        for is_noted in (False, True):
            trace.resume(is_noted)
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert answer.status == 200
                answer.read()
        trace.resume(False)
    _thread.interrupt_main()


def main() -> int:
    """Run what the arguments say."""
    from odf_node.cli.main import main as run

    words = sys.argv[1:]
    import_everything()
    trace = Trace()
    if words[0] != "--serving":
        with trace.open():
            code = run(words)
        print(trace.as_json())
        return code
    path, words = words[1], words[2:]
    port = [int(words[words.index("--http-port") + 1])]
    ready = threading.Event()
    threading.Thread(target=ask_once, args=(trace, path, ready, port), daemon=True).start()

    def watch() -> None:
        for _ in range(READY_S * 10):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port[0]}/", timeout=5).close()
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
                continue
            break
        ready.set()

    threading.Thread(target=watch, daemon=True).start()
    with trace.open():
        trace.resume(False)
        try:
            code = run(words)
        except KeyboardInterrupt:
            code = 0
    print(trace.as_json())
    return code


if __name__ == "__main__":
    sys.exit(main())
