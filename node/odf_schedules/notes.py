"""What the daemon notes of its schedules, for the next one and for commands that show it: ``cache/schedules.json``.

A cache: without it intervals begin anew. Written whole under another name and renamed.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from odf_node.configuration.declaration import Schedule
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_schedules.standings import Rest, RunOutcome, Standing

NOTES_FILE: Final = "schedules.json"
MAX_NOTES_BYTES: Final = 64 * 1024**2  # guess: a hundred thousand datasets that all failed


@dataclass(frozen=True, slots=True)
class NotedPlace:
    """How a dataset stood; ``rule`` is the number of its schedule, None: it follows what it rests on.

    ``host`` is where its source is asked, None: nowhere.
    """

    rule: int | None
    standing: Standing
    host: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleNotes:
    """What the daemon noted at a time (milliseconds since 1970; None: nothing)."""

    noted_ms: int | None = None
    schedules: tuple[Schedule, ...] = ()
    places: Mapping[DatasetId, NotedPlace] = field(default_factory=dict)
    of_settings: int = 0
    """How many of the schedules are of the settings; the others are declared by datasets."""
    rests: Mapping[str, Rest] = field(default_factory=dict)
    """Which hosts are left alone."""


def read_notes(cache: Path) -> ScheduleNotes:
    """Return what was noted last; a file that cannot be read is none, as a cache may be deleted."""
    try:
        path = cache / NOTES_FILE
        if path.stat().st_size > MAX_NOTES_BYTES:
            return ScheduleNotes()
        found = json.loads(path.read_bytes())
        schedules = tuple(Schedule(**each) for each in found["schedules"])
        places = {DatasetId.parse(key): _place_of(value, len(schedules)) for key, value in found["places"].items()}
        rests = {str(host): Rest(*(_whole(each) or 0 for each in times)) for host, times in found["rests"].items()}
        count = max(0, _whole(found["of_settings"]) or 0)
        return ScheduleNotes(_whole(found["noted_ms"]), schedules, places, count, rests)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MalformedError):
        return ScheduleNotes()


def write_notes(cache: Path, notes: ScheduleNotes) -> bool:
    """Write them; False where that cannot be done: a home that cannot be written is served all the same (DAEMON-18)."""
    places = {str(key): _form_of(place) for key, place in notes.places.items()}
    text = json.dumps(
        {
            "noted_ms": notes.noted_ms,
            "schedules": [asdict(each) for each in notes.schedules],
            "of_settings": notes.of_settings,
            "places": places,
            "rests": {host: [rest.since_ms, rest.until_ms] for host, rest in notes.rests.items()},
        }
    )
    temporary = cache / f".{NOTES_FILE}"
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(cache / NOTES_FILE)
    except OSError:
        return False
    return True


def _form_of(place: NotedPlace) -> dict[str, Any]:
    standing = place.standing  # not by asdict, which takes ten times as long: there may be ten thousand of them
    return {
        "rule": place.rule,
        "due_ms": standing.due_ms,
        "attempts": standing.attempts,
        "ended_ms": standing.ended_ms,
        "result": standing.result,
        "text": standing.text,
        "well_ms": standing.well_ms,
        "host": place.host,
    }


def _place_of(found: dict[str, Any], count: int) -> NotedPlace:
    rule = _whole(found["rule"])
    if rule is not None and not 0 <= rule < count:
        raise ValueError(rule)
    result = None if found["result"] is None else RunOutcome(found["result"])
    standing = Standing(
        due_ms=_whole(found["due_ms"]),
        attempts=max(0, _whole(found["attempts"]) or 0),
        ended_ms=_whole(found["ended_ms"]),
        result=result,
        text=str(found["text"]),
        well_ms=_whole(found["well_ms"]),
    )
    return NotedPlace(rule, standing, None if found["host"] is None else str(found["host"]))


def _whole(value: object) -> int | None:
    if value is not None and not isinstance(value, int):
        raise TypeError(value)
    return value
