"""Who is told of new blocks, how far each was told, and when one that did not answer is asked again.

What waits follows from how far each was told, so it never grows beyond one notice for each target and dataset: of what
came meanwhile the last head is told, with the first one that was not.

Source: clauses NOTICE-1 to NOTICE-5 in ``spec/notices.md``.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from odf_node.configuration.declaration import Notice
from odf_node.ports.notices import MAX_ATTEMPTS, Told, wait_after_s
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.names import fits_pattern

__all__ = ["MAX_ATTEMPTS", "NOTES_FILE", "NoticeRegistry", "Waiting", "read_registry", "write_registry"]

NOTES_FILE: Final = "notices.json"
_MAX_NOTES_BYTES: Final = 64 * 1024**2  # guess: a hundred targets of some thousand datasets


@dataclass(frozen=True, slots=True)
class Waiting:
    """A dataset with blocks that a target was not told of; ``old`` is None where it was not there."""

    record: DatasetRecord
    old: Head | None


@dataclass(slots=True)
class _Place:
    """What one target was told: heads by dataset; attempts in vain since something went well, and when the next is."""

    heads: dict[DatasetId, Head]
    attempts: int = 0
    due_s: float = 0.0


@dataclass
class NoticeRegistry:
    """All targets; used by one thread."""

    places: dict[Notice, _Place] = field(default_factory=dict)

    def renew(self, notices: Sequence[Notice], records: Sequence[DatasetRecord]) -> None:
        """Take over who is to be told; of what is there already, a new target is told nothing."""
        places, there = {}, {each.id for each in records}
        for notice in notices:
            place = self.places.get(notice)
            if place is None:
                place = _Place({each.id: each.head for each in _named(notice, records)})
            for gone in place.heads.keys() - there:
                del place.heads[gone]
            places[notice] = place
        self.places = places

    def list_due(self, records: Sequence[DatasetRecord], now_s: float) -> dict[Notice, list[Waiting]]:
        """List what each target that is due is to be told."""
        found = {}
        for notice, place in self.places.items():
            if place.due_s <= now_s and (waiting := self._list_waiting(notice, records)):
                found[notice] = waiting
        return found

    def count_waiting(self, records: Sequence[DatasetRecord]) -> int:
        """Count what is not told yet."""
        return sum(len(self._list_waiting(notice, records)) for notice in self.places)

    def settle(self, notice: Notice, waiting: Waiting, reported: Told, now_s: float) -> Told:
        """Take down how it went; what was in vain too often is dropped.

        Args:
            notice: Who was told.
            waiting: What.
            reported: How it went.
            now_s: Of a clock that only goes forward.

        Returns:
            ``told``, or ``DROPPED``.
        """
        place = self.places.get(notice)
        if place is None:  # it was taken out of the settings meanwhile
            return reported
        if reported is Told.UNAVAILABLE:
            place.attempts += 1
            if place.attempts < MAX_ATTEMPTS:
                place.due_s = now_s + wait_after_s(place.attempts)
                return reported
            reported = Told.DROPPED
        place.attempts, place.due_s = 0, 0.0
        place.heads[waiting.record.id] = waiting.record.head
        return reported

    def _list_waiting(self, notice: Notice, records: Iterable[DatasetRecord]) -> list[Waiting]:
        heads = self.places[notice].heads
        return [Waiting(each, old) for each in _named(notice, records) if (old := heads.get(each.id)) != each.head]


def _named(notice: Notice, records: Iterable[DatasetRecord]) -> list[DatasetRecord]:
    patterns = (notice.datasets or "").split()
    return [each for each in records if any(fits_pattern(pattern, each.name) for pattern in patterns)]


def read_registry(cache: Path) -> NoticeRegistry:
    """Return who was told what when the last daemon ended; a file that cannot be read is none."""
    try:
        path = cache / NOTES_FILE
        if path.stat().st_size > _MAX_NOTES_BYTES:
            return NoticeRegistry()
        found = json.loads(path.read_bytes())
        return NoticeRegistry({_notice_of(each): _Place(_heads_of(each["heads"])) for each in found})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MalformedError):
        return NoticeRegistry()


def write_registry(cache: Path, registry: NoticeRegistry) -> None:
    """Write it down; a home that cannot be written is served all the same (DAEMON-18)."""
    found = [
        {
            "url": notice.url,
            "datasets": notice.datasets,
            "heads": {str(key): [head.sequence_number, str(head.hash)] for key, head in place.heads.items()},
        }
        for notice, place in registry.places.items()
    ]
    temporary = cache / f".{NOTES_FILE}"
    try:
        temporary.touch(mode=0o600)  # addresses of receivers may have a secret in their path
        temporary.write_text(json.dumps(found), encoding="utf-8")
        temporary.replace(cache / NOTES_FILE)
    except OSError:
        return


def _notice_of(found: dict[str, Any]) -> Notice:
    return Notice(url=str(found["url"]), datasets=str(found["datasets"]))


def _heads_of(found: dict[str, Any]) -> dict[DatasetId, Head]:
    return {DatasetId.parse(key): Head(int(number), Multihash.parse(name)) for key, (number, name) in found.items()}
