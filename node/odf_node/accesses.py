"""Plug-ins that hear of reads and writes, found when the first one happens; part of the composition.

Source: clauses PLUG-20 and PLUG-21 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from odf_node.home_folder import HomeFolder
from odf_node.plug_ins import contained, load_plug_ins
from odf_node.ports.access import AccessLog, WriteNote
from odf_node.ports.clock import Clock
from odf_node.ports.keys import KeyStore
from odf_node.records.commits import Commit
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.timestamp import Timestamp

GROUP: Final = "odf_node.access"


@dataclass(frozen=True, slots=True)
class AccessPlaces:
    """What a plug-in is given of a home.

    Attributes:
        folder: The home.
        keys: Has the node's key.
        clock: The time of the run.
        store: Has the audit log, where records go.
    """

    folder: HomeFolder
    keys: KeyStore
    clock: Clock
    store: MetadataStore


@dataclass(frozen=True, slots=True)
class AccessPlugIn:
    """What an entry point of ``odf_node.access`` leads to.

    Attributes:
        open: Begins to hear of one home.
    """

    open: Callable[[AccessPlaces], AccessLog]


class FoundAccessLogs(AccessLog):
    """See ``AccessLog``; passes on what it hears. One that fails costs no work, and is noted (PLUG-3)."""

    def __init__(self, places: AccessPlaces) -> None:
        self._places = places
        self._lock = Lock()
        self._logs: dict[str, AccessLog] | None = None

    def note_read(
        self,
        record: DatasetRecord,
        *,
        as_of: Timestamp | None = None,
        version: int | None = None,
        what: str = "rows",
    ) -> None:
        """See ``AccessLog``."""
        for name, log in self._open().items():
            with contained(GROUP, name):
                log.note_read(record, as_of=as_of, version=version, what=what)

    def note_write(self, commit: Commit) -> WriteNote | None:
        """See ``AccessLog``; the first plug-in that has something to keep is the one whose rows are kept."""
        for name, log in self._open().items():
            with contained(GROUP, name):
                if (note := log.note_write(commit)) is not None:
                    return note
        return None

    def flush(self) -> None:
        """See ``AccessLog``."""
        for name, log in (self._logs or {}).items():
            with contained(GROUP, name):
                log.flush()

    def close(self) -> None:
        """See ``AccessLog``."""
        for name, log in (self._logs or {}).items():
            with contained(GROUP, name):
                log.close()

    def _open(self) -> dict[str, AccessLog]:
        if self._logs is None:
            with self._lock:
                if self._logs is None:
                    found = load_plug_ins(GROUP, AccessPlugIn)
                    opened: dict[str, AccessLog] = {}
                    for name, plug_in in found.items():
                        with contained(GROUP, name):
                            opened[name] = plug_in.open(self._places)
                    self._logs = opened
        return self._logs
