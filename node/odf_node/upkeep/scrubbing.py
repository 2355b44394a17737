"""Reading every object again, slowly, to find bytes that decayed before somebody needs them (HOME-47).

A round reads all objects in the order of their names, at most so many bytes a second. Where it stands is in
``cache/scrub.json``, so that the next process goes on there; what was found stays in it until a round finds it fixed.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from odf_node.home import Home
from odf_node.records.errors import ObjectNotFoundError
from odf_protocol.errors import CorruptError
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

STATE_FILE: Final = "scrub.json"
_SAVE_EACH_S: Final = 10.0  # guess: what is read again after a crash


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubState:
    """How far a round is, and what is known to be damaged.

    Attributes:
        began_at: When the round began; None: there was none.
        ended_at: When it ended; None: it has not.
        last: Name of the object that was read last.
        checked: Objects read in this round.
        checked_bytes: Their bytes.
        damaged: Names of objects whose bytes are others, or which are gone although they have to be here.
    """

    began_at: str | None = None
    ended_at: str | None = None
    last: str = ""
    checked: int = 0
    checked_bytes: int = 0
    damaged: tuple[str, ...] = ()


def read_scrub_state(cache: Path) -> ScrubState:
    """Return what the last process left; a file that cannot be read is none, as a cache may be deleted."""
    try:
        found = json.loads((cache / STATE_FILE).read_bytes())
        return ScrubState(**(found | {"damaged": tuple(found["damaged"])}))
    except (OSError, ValueError, TypeError, KeyError):
        return ScrubState()


@dataclass(slots=True)
class Scrubber:
    """Reads objects; one thread at a time."""

    home: Home

    def run(
        self,
        *,
        now: Callable[[], Timestamp],
        bytes_per_second: int,
        wait: Callable[[float], bool],
        on_damage: Callable[[str], None],
        afresh: bool = False,
    ) -> ScrubState:
        """Go on with a round, or begin one, until it ends or ``wait`` says stop.

        Args:
            now: The time.
            bytes_per_second: How fast to read; 0: as fast as it goes.
            wait: Waits so many seconds; True: stop, and leave the rest for later.
            on_damage: Told the name of each damaged object that was not known before.
            afresh: Begin a round although one is under way.
        """
        state = read_scrub_state(self.home.folder.cache)
        if afresh or state.began_at is None or state.ended_at is not None:
            state = ScrubState(began_at=str(now()), damaged=state.damaged)
        damaged = set(state.damaged)
        named = {str(item) for item in self.home.store.list_expected_objects()}
        saved_s = time.monotonic()
        for name in sorted({str(item) for item in self.home.objects.iter_hashes()} | named):
            if name <= state.last:
                continue
            began_s, size_bytes = time.monotonic(), 0
            try:
                size_bytes = self._check(Multihash.parse(name))
                damaged.discard(name)
            except ObjectNotFoundError:
                # Swept or dropped while the list was being read, unless somebody still wants it here.
                if name in named and Multihash.parse(name) in self.home.store.list_expected_objects():
                    self._note(name, damaged, on_damage)
            except CorruptError:
                self._note(name, damaged, on_damage)
            state = replace(
                state,
                last=name,
                checked=state.checked + 1,
                checked_bytes=state.checked_bytes + size_bytes,
                damaged=tuple(sorted(damaged)),
            )
            if time.monotonic() - saved_s > _SAVE_EACH_S:
                self._save(state)
                saved_s = time.monotonic()
            pause_s = size_bytes / bytes_per_second - (time.monotonic() - began_s) if bytes_per_second else 0.0
            if wait(max(0.0, pause_s)):
                self._save(state)
                return state
        # What was damaged and is not named any more, nor here, is nobody's loss.
        here = {str(item) for item in self.home.objects.iter_hashes()} | named
        state = replace(state, ended_at=str(now()), last="", damaged=tuple(sorted(damaged & here)))
        self._save(state)
        return state

    def _check(self, object_hash: Multihash) -> int:
        size_bytes = self.home.objects.get_size(object_hash)
        self.home.objects.check(object_hash)
        return size_bytes

    def _note(self, name: str, damaged: set[str], on_damage: Callable[[str], None]) -> None:
        if name not in damaged:
            damaged.add(name)
            on_damage(name)

    def _save(self, state: ScrubState) -> None:
        temporary = self.home.folder.cache / f".{STATE_FILE}"
        try:
            temporary.write_text(json.dumps(asdict(state)), encoding="utf-8")
            temporary.replace(self.home.folder.cache / STATE_FILE)
        except OSError:
            return  # a home that cannot be written can still be read through; the next round begins anew
