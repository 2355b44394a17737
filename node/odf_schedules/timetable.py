"""Which dataset is pulled next: all that have a schedule, how they stand, which run. Pure; the time is passed in.

Source: clauses SCHED-1, SCHED-7, SCHED-8, SCHED-11 and SCHED-12 in ``spec/plug-ins/schedules.md``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from odf_node.configuration.declaration import HostSettings, Schedule
from odf_node.configuration.schedule_times import Timing, parse_cron, parse_every
from odf_protocol.did import DatasetId
from odf_protocol.names import fits_pattern
from odf_schedules.standings import Rests, RunEnded, Standing, bring_forward, find_pause_ms, parse_pause_ms, settle

HEAD_START_MS: Final = {"high": 15 * 60_000, "normal": 0, "low": -15 * 60_000}
"""How much earlier what is due counts as due; no more, so nothing waits for ever.  # guess: a busy node's backlog"""


@dataclass(frozen=True, slots=True)
class DueCandidate:
    """A dataset of this node that can be pulled.

    Attributes:
        id: Of the dataset.
        name: Of it.
        inputs: What it rests on here.
        host: That its source is at, if any.
        schedule: That it declares itself, if any.
        scheme: Of its source's address, where it has a host.
    """

    id: DatasetId
    name: str
    inputs: tuple[DatasetId, ...] = ()
    host: str | None = None
    schedule: Schedule | None = None
    scheme: str = ""


@dataclass(slots=True)
class QueuePlace:
    """A dataset's place in the timetable; ``rule`` is the number of its schedule, None: it follows what it rests on."""

    candidate: DueCandidate
    rule: int | None
    standing: Standing
    began_ms: int | None = None
    """When the pull that runs began; None: none runs."""
    is_left: bool = False
    """That pull was to end long ago, so that it counts no more."""
    followed: str = "normal"
    """The priority of what it followed last, where it has no schedule."""
    is_asked_again: bool = False
    """What it rests on was pulled while it was."""


@dataclass
class Timetable:
    """The plan of one daemon; used by one thread at a time."""

    standings: Mapping[DatasetId, Standing]
    """How datasets stood when the last process ended."""
    schedules: tuple[Schedule, ...] = ()
    """Those of the settings, and behind them those that datasets declare."""
    of_settings: int = 0
    """How many are of the settings."""
    places: dict[DatasetId, QueuePlace] = field(default_factory=dict)
    rests: Rests = field(default_factory=Rests)
    _timings: list[Timing] = field(default_factory=list)
    _rules: dict[str, int | None] = field(default_factory=dict)
    """The schedule of each name that was looked at."""
    _declared: dict[str, int] = field(default_factory=dict)
    """The schedule that each dataset declares, by its name."""
    _readers: dict[DatasetId, list[DatasetId]] = field(default_factory=dict)

    def renew(
        self,
        schedules: tuple[Schedule, ...],
        candidates: Sequence[DueCandidate],
        now_ms: int,
        sources: tuple[HostSettings, ...] = (),
    ) -> None:
        """Take over what there is to pull, when, and how often hosts are asked; what runs goes on."""
        declared = {each.name: each.schedule for each in candidates if each.schedule is not None}
        found = (*schedules, *declared.values())
        if (found, len(schedules)) != (self.schedules, self.of_settings):
            self.schedules, self.of_settings, self._rules = found, len(schedules), {}
            self._timings = [timing_of(each) for each in found]
            self._declared = {name: len(schedules) + number for number, name in enumerate(declared)}
        before, self.places, self._readers = self.places, {}, {}
        for candidate in candidates:
            for each in candidate.inputs:
                self._readers.setdefault(each, []).append(candidate.id)
        for candidate in self._list_scheduled(candidates):
            old, rule = before.pop(candidate.id, None), self._find_rule(candidate.name)
            place = old or QueuePlace(candidate, rule, self.standings.get(candidate.id, Standing()))
            place.candidate, place.rule = candidate, rule
            if place.began_ms is None:
                timing = None if rule is None else self._timings[rule]
                place.standing = bring_forward(place.standing, timing, now_ms, _key(candidate))
            self.places[candidate.id] = place
        for key, old in before.items():
            if old.began_ms is not None:
                old.rule = None
                self.places[key] = old
        self.rests.renew(self._list_pauses_ms(sources), now_ms)

    def take_due(self, now_ms: int, at_once: int) -> list[DueCandidate]:
        """Choose what is to begin now, the oldest first, by priority; it counts as running from now on (SCHED-7)."""
        running = [place for place in self.places.values() if place.began_ms is not None]
        hosts = {place.candidate.host for place in running} - {None}
        counted = [place for place in running if not place.is_left]
        free, failing = at_once - len(counted), sum(place.standing.is_failing for place in counted)
        taken: list[DueCandidate] = []
        for place in self._list_due(now_ms) if free > 0 else ():
            if len(taken) == free:
                break
            if place.candidate.host in hosts or self.rests.find_end_ms(place.candidate.host) > now_ms:
                continue
            if place.standing.is_failing:
                # What failed before may hang again: one place is kept for those that did not.
                if failing >= max(1, at_once - 1):
                    continue
                failing += 1
            if place.candidate.host is not None:
                hosts.add(place.candidate.host)
            place.began_ms = now_ms
            self.rests.begin(place.candidate.host, now_ms)  # so that a process that was killed has left it alone, too
            taken.append(place.candidate)
        return taken

    def end(self, dataset_id: DatasetId, ended: RunEnded, now_ms: int) -> Standing:
        """Take down what became of a pull; own derivatives that rest on the dataset are due then (SCHED-8)."""
        place = self.places[dataset_id]
        assert place.began_ms is not None
        timing = None if place.rule is None else self._timings[place.rule]
        place.standing = settle(place.standing, ended, timing, place.began_ms, now_ms, _key(place.candidate))
        place.began_ms, place.is_left = None, False
        self.rests.begin(place.candidate.host, now_ms, ended.rest_s)
        if place.is_asked_again:
            place.is_asked_again = False
            self._ask(place, now_ms)
        if not place.standing.is_failing and self._brings_readers(place):
            for reader in self._readers.get(dataset_id, ()):
                if reader in self.places:
                    self.places[reader].followed = self._priority_of(place)
                    self._ask(self.places[reader], now_ms)
        return place.standing

    def leave(self, dataset_id: DatasetId) -> None:
        """Count a pull no more that does not end; the dataset is not pulled again before it does."""
        self.places[dataset_id].is_left = True

    def find_next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next one will be due; what is due now waits for one that runs. None: nothing will be."""
        waiting = (place for place in self.places.values() if place.began_ms is None)
        times = (
            max(due_ms, self.rests.find_end_ms(place.candidate.host))
            for place in waiting
            if (due_ms := place.standing.due_ms) is not None
        )
        return min((time_ms for time_ms in times if time_ms > now_ms), default=None)

    def list_idle_rules(self) -> list[int]:
        """List the schedules of the settings that name no dataset of this node that can be pulled."""
        used = {place.rule for place in self.places.values()}
        return [number for number in range(self.of_settings) if number not in used]

    def _list_pauses_ms(self, sources: tuple[HostSettings, ...]) -> dict[str, int]:
        """List the hosts with a pause: the longest of what the operator and the schedules of datasets there state."""
        pauses_ms: dict[str, int] = {}
        for place in self.places.values():
            host = place.candidate.host
            if host is not None:
                stated = None if place.rule is None else self.schedules[place.rule].pause
                of_host = find_pause_ms(sources, place.candidate.scheme, host)
                pauses_ms[host] = max(pauses_ms.get(host, 0), of_host, parse_pause_ms(stated))
        return {host: pause_ms for host, pause_ms in pauses_ms.items() if pause_ms}

    def _list_due(self, now_ms: int) -> list[QueuePlace]:
        found = [
            (due_ms - HEAD_START_MS[self._priority_of(place)], place.candidate.name, number, place)
            for number, place in enumerate(self.places.values())
            if place.began_ms is None and (due_ms := place.standing.due_ms) is not None and due_ms <= now_ms
        ]
        return [place for *_, place in sorted(found)]

    def _priority_of(self, place: QueuePlace) -> str:
        return place.followed if place.rule is None else self.schedules[place.rule].priority

    def _list_scheduled(self, candidates: Iterable[DueCandidate]) -> Iterator[DueCandidate]:
        """Yield those with a schedule, and those that follow one of these."""
        by_id = {candidate.id: candidate for candidate in candidates}
        waiting = [each for each in by_id.values() if self._find_rule(each.name) is not None]
        known = {each.id for each in waiting}
        while waiting:
            candidate = waiting.pop()
            yield candidate
            rule = self._find_rule(candidate.name)
            if rule is None or self.schedules[rule].derivatives:
                for reader in self._readers.get(candidate.id, ()):
                    if reader not in known:
                        known.add(reader)
                        waiting.append(by_id[reader])

    def _find_rule(self, name: str) -> int | None:
        if name not in self._rules:
            numbers = (
                number
                for number, schedule in enumerate(self.schedules[: self.of_settings])
                if any(fits_pattern(word, name) for word in (schedule.datasets or "").split())
            )
            self._rules[name] = next(numbers, self._declared.get(name))
        return self._rules[name]

    def _brings_readers(self, place: QueuePlace) -> bool:
        return place.rule is None or self.schedules[place.rule].derivatives

    def _ask(self, place: QueuePlace, now_ms: int) -> None:
        if place.began_ms is not None:
            place.is_asked_again = True
        elif not place.standing.attempts:  # else it waits for something that does not answer
            due_ms = place.standing.due_ms
            place.standing = replace(place.standing, due_ms=now_ms if due_ms is None else min(due_ms, now_ms))


def timing_of(schedule: Schedule) -> Timing:
    """Return when a schedule comes round; its settings were checked when they were read."""
    if schedule.every is not None:
        return parse_every(schedule.every)
    return parse_cron(schedule.cron or "", schedule.time_zone)


def _key(candidate: DueCandidate) -> bytes:
    return bytes(candidate.id.public_key)[:8]
