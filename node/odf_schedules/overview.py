"""What schedules there are and how datasets stand in them, as the daemon noted it last (SCHED-9)."""

from collections.abc import Iterator
from dataclasses import dataclass

from odf_node.configuration.declaration import Schedule
from odf_node.home import Home
from odf_node.store import MetadataStore
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp
from odf_schedules.notes import ScheduleNotes, read_notes
from odf_schedules.standings import Standing


@dataclass(frozen=True, slots=True)
class ScheduledDataset:
    """A dataset with a place in the timetable; ``when`` is its schedule in words.

    ``rest_ms`` is until when its source's host is left alone (SCHED-12).
    """

    name: str
    when: str
    standing: Standing
    rest_ms: int = 0

    @property
    def next_at(self) -> Timestamp | None:
        """When it is pulled next; None: right after what it rests on, or never."""
        due_ms = self.standing.due_ms
        return time_of(None if due_ms is None else max(due_ms, self.rest_ms))

    @property
    def rests_until(self) -> Timestamp | None:
        """Until when it waits for its source's host to be asked again; None: not for that."""
        return None if self.standing.due_ms is None or self.rest_ms <= self.standing.due_ms else self.next_at

    @property
    def why(self) -> str:
        """Why the last pull failed and the next one waits; empty: neither."""
        rests = f"its host is left alone until {self.rests_until}" if self.rests_until else ""
        return "; ".join(text for text in (self.standing.text, rests) if text)


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """One schedule, or None for all that datasets declare; how many it names, and when the first of them is pulled."""

    schedule: Schedule | None
    when: str
    count: int
    next_at: Timestamp | None


@dataclass(frozen=True, slots=True)
class ScheduleOverview:
    """The use case behind ``odf-node schedule``: reads what is noted, asks nobody, changes nothing."""

    store: MetadataStore
    notes: ScheduleNotes

    def list_datasets(self) -> list[ScheduledDataset]:
        """List the datasets that are pulled by themselves, by name."""
        return list(self._iter_datasets())

    def list_schedules(self) -> list[ScheduleSummary]:
        """List the schedules, in the order of the settings, and all that datasets declare as one behind them."""
        notes = self.notes
        found = [self._summary(each, describe(each), {number}) for number, each in enumerate(self._of_settings)]
        declared = {place.rule for place in notes.places.values() if place.rule is not None} - {*range(len(found))}
        return [*found, self._summary(None, "by their manifests", declared)] if declared else found

    @property
    def _of_settings(self) -> tuple[Schedule, ...]:
        return self.notes.schedules[: self.notes.of_settings]

    def _summary(self, schedule: Schedule | None, when: str, rules: set[int]) -> ScheduleSummary:
        places = [place for place in self.notes.places.values() if place.rule in rules]
        times = (place.standing.due_ms for place in places)
        due_ms = min((time_ms for time_ms in times if time_ms is not None), default=None)
        return ScheduleSummary(schedule, when, len(places), time_of(due_ms))

    def _iter_datasets(self) -> Iterator[ScheduledDataset]:
        notes = self.notes
        for record in self.store.list_datasets() if notes.places else ():
            place = notes.places.get(record.id)
            if place is not None:
                rest = notes.rests.get(place.host or "")
                rest_ms = 0 if rest is None else rest.until_ms
                yield ScheduledDataset(record.name, self._when(place.rule), place.standing, rest_ms)

    def _when(self, rule: int | None) -> str:
        if rule is None:
            return "after its inputs"
        return f"{describe(self.notes.schedules[rule])}{'' if rule < self.notes.of_settings else ' (manifest)'}"


def open_overview(home: Home) -> ScheduleOverview:
    """Return the overview of a home, by what the daemon noted there last."""
    return ScheduleOverview(home.store, read_notes(home.folder.cache))


def describe(schedule: Schedule) -> str:
    """Say in words when a schedule comes round."""
    when = f"every {schedule.every}" if schedule.every is not None else f"{schedule.cron} {schedule.time_zone}"
    when = when if schedule.pause is None else f"{when}, {schedule.pause} between pulls"
    return when if schedule.priority == "normal" else f"{when}, {schedule.priority} priority"


def time_of(time_ms: int | None) -> Timestamp | None:
    """Return a time that was noted; None where it is none."""
    try:
        return None if time_ms is None else Timestamp.from_unix_ms(time_ms)
    except MalformedError:
        return None
