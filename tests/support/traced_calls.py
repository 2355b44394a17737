"""Through which modules an object goes: every call of a function of this program that gets it, in order."""

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any


@dataclass
class Visits:
    """The modules of this program whose functions got an object of a class, in the order of the calls."""

    kind: type
    packages: tuple[str, ...]
    modules: list[str] = field(default_factory=list)
    """One entry for calls of one module that follow each other."""
    _begun: set[FrameType] = field(default_factory=set)

    @property
    def returns(self) -> list[str]:
        """The entries into a module that the object had left."""
        return [name for place, name in enumerate(self.modules) if name in self.modules[:place]]

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """See what was called; to be set as profile function."""
        module = str(frame.f_globals.get("__name__", ""))
        if event != "call" or module.partition(".")[0] not in self.packages or frame in self._begun:
            return
        if any(isinstance(each, self.kind) for each in _arguments(frame)):
            # Coroutines and generators are called once, and go on in the same frame.
            self._begun.add(frame)
            if self.modules[-1:] != [module]:
                self.modules.append(module)


@contextmanager
def visits_of(kind: type, *packages: str) -> Iterator[Visits]:
    """Follow the objects of a class through packages, in this thread and in those that begin meanwhile."""
    requests = Visits(kind, packages)
    threading.setprofile(requests.note)
    sys.setprofile(requests.note)
    try:
        yield requests
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _arguments(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    rest = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + rest]:
        value = frame.f_locals.get(name)
        yield from value if isinstance(value, tuple) else (value,)
