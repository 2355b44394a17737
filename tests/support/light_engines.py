"""Engines that start in a second, which stay for the next command: their start costs more than all that it asks.

A node starts them for each command (ENGINE-25), which takes half a second of a processor and more. Where a test is not
about that start, commands and nodes of this process ask one of each, in its sandbox, with requests and answers as ever.
"""

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from odf_engines.contract import Limits
from odf_engines.engine import EngineSession
from odf_engines.errors import EngineFailureError
from odf_engines.guest_packages import plug_in_mounts
from odf_engines.host.session import HostSession
from odf_engines.registry import get_engine
from odf_engines.sandbox.profile import Mount
from odf_node.engines.sessions import EngineHost
from support.warm_engine import process_folder

LIGHT = ("arrow", "datafusion")

_TURNS = {name: threading.Lock() for name in LIGHT}
_OPEN: dict[tuple[str, tuple[Mount, ...]], HostSession] = {}
"""By name, and by the packages of others that a sandbox shows."""


@contextmanager
def sharing_light_engines() -> Iterator[None]:
    """Let hosts of engines with usual limits ask the same sessions where each would start its own for its operator."""
    quick_session, find_warm = EngineHost._quick_session, EngineHost._find_warm

    def lent(host: EngineHost, name: str) -> EngineSession | None:
        return host._watched(_Lent(name), name) if name in LIGHT and host.limits == Limits() else None

    def quick_or_lent(host: EngineHost, name: str) -> Any:
        if name not in host._own and (session := lent(host, name)) is not None:
            host._own[name] = session
        return quick_session(host, name)

    EngineHost._quick_session = quick_or_lent  # type: ignore[method-assign]
    EngineHost._find_warm = lambda host, name: find_warm(host, name) or lent(host, name)  # type: ignore[method-assign]
    try:
        yield
    finally:
        EngineHost._quick_session = quick_session  # type: ignore[method-assign]
        EngineHost._find_warm = find_warm  # type: ignore[method-assign]


def _shared(name: str) -> HostSession:
    key = name, plug_in_mounts()
    if key not in _OPEN:
        folder = process_folder() / "engine" / f"light-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        session = get_engine(name).open(folder, Limits())
        assert isinstance(session, HostSession)
        atexit.register(session.close)
        _OPEN[key] = session
    return _OPEN[key]


class _Lent:
    """An engine in the hands of one command: to close it gives it back, to stop it ends what it does for this one."""

    def __init__(self, name: str) -> None:
        self.on_progress: Callable[[int], None] = lambda _count: None
        self._name = name
        self._is_stopped = False
        self._asked: HostSession | None = None

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def ask(*query_text: Any, **options: Any) -> Any:
            with _TURNS[self._name]:
                self._asked = _shared(self._name)
                self._asked.on_progress = self.on_progress
                try:
                    if self._is_stopped:
                        raise EngineFailureError("the session was stopped")
                    return getattr(self._asked, operation)(*query_text, **options)
                finally:
                    self._asked = None

        return ask

    def stop(self) -> None:
        self._is_stopped = True
        if self._asked is not None:
            _OPEN.clear()
            self._asked.stop()

    def close(self) -> None: ...

    def __enter__(self) -> "_Lent":
        return self

    def __exit__(self, *exc_info: object) -> None: ...
