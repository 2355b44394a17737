"""Which dataset is pulled next: order, hosts, retries, derivatives, clocks that jump (SCHED-1, SCHED-4 to SCHED-8)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_node.configuration.declaration import HostSettings, Schedule
from odf_protocol.did import DatasetId
from odf_schedules.standings import LONGEST_REST_MS, LONGEST_WAIT_MS, MAX_ATTEMPTS, RunEnded, RunOutcome, Standing
from odf_schedules.timetable import DueCandidate, Timetable

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 1_700_000_000_000
QUARTER = Schedule(datasets="%", every="15m")
WELL = RunEnded(RunOutcome.UP_TO_DATE)
AWAY = RunEnded(RunOutcome.UNAVAILABLE, "no server answers there")
WRONG = RunEnded(RunOutcome.FAILED, "no such column")


def candidate(name: str, *inputs: DueCandidate, host: str | None = None) -> DueCandidate:
    # The spread is a share of the first two bytes: none.
    key = b"\0\0" + name.encode().ljust(30, b"\0")
    return DueCandidate(DatasetId(key), name, tuple(each.id for each in inputs), host)


def table(*candidates: DueCandidate, schedules: tuple[Schedule, ...] = (QUARTER,), now_ms: int = NOW) -> Timetable:
    made = Timetable({})
    made.renew(schedules, candidates, now_ms)
    return made


def names(taken: list[DueCandidate]) -> list[str]:
    return [each.name for each in taken]


def due_of(plan: Timetable, each: DueCandidate) -> int | None:
    return plan.places[each.id].standing.due_ms


A, B, C = candidate("a"), candidate("b"), candidate("c")


def test_interval_begins_at_once_and_counts_from_the_beginning_of_a_pull() -> None:
    plan = table(A)
    assert names(plan.take_due(NOW, 2)) == ["a"]
    plan.end(A.id, WELL, NOW + 5 * MINUTE)
    assert due_of(plan, A) == NOW + 15 * MINUTE
    assert plan.take_due(NOW + 15 * MINUTE - 1, 2) == []
    assert names(plan.take_due(NOW + 15 * MINUTE, 2)) == ["a"]


def test_cron_waits_for_its_first_time() -> None:
    plan = table(A, schedules=(Schedule(datasets="a", cron="0 0 * * *"),))
    assert plan.take_due(NOW, 2) == []
    assert due_of(plan, A) == NOW // DAY * DAY + DAY


def test_share_of_the_spread_lasts_until_the_time_has_come() -> None:
    """SCHED-4."""
    late = DueCandidate(DatasetId(b"\xff" * 32), "late")
    schedule = Schedule(datasets="late", cron="0 0 * * *")
    midnight = NOW // DAY * DAY + DAY
    plan = table(late, schedules=(schedule,), now_ms=midnight - 12 * HOUR)
    for now in range(midnight - 12 * HOUR, midnight + MINUTE, 5_000):
        plan.renew((schedule,), [late], now)
        assert plan.take_due(now, 2) == []
    assert names(plan.take_due(midnight + MINUTE, 2)) == ["late"]


def test_dataset_is_never_pulled_twice_at_once() -> None:
    plan = table(A, schedules=(Schedule(datasets="a", every="1s"),))
    assert names(plan.take_due(NOW, 9)) == ["a"]
    assert plan.take_due(NOW + DAY, 9) == []
    plan.renew((Schedule(datasets="%", every="2s"),), [A], NOW + DAY)
    assert plan.take_due(NOW + DAY, 9) == []


def test_first_schedule_that_names_a_dataset_holds_and_idle_ones_are_known() -> None:
    rules = (
        Schedule(datasets="b x.%", every="1h"),
        Schedule(datasets="%", every="15m"),
        Schedule(datasets="a", every="1s"),
    )
    plan = table(A, B, schedules=rules)
    assert {plan.places[each.id].candidate.name: plan.places[each.id].rule for each in (A, B)} == {"a": 1, "b": 0}
    assert plan.list_idle_rules() == [2]


def test_schedule_that_a_dataset_declares_holds_where_no_other_names_it() -> None:
    """SCHED-11."""
    own = [replace(each, schedule=Schedule(datasets=each.name, every="1h")) for each in (A, B)]
    rules = (Schedule(datasets="b x.%", every="15m"),)
    plan = table(*own, C, schedules=rules)
    assert {place.candidate.name: plan.schedules[place.rule or 0].every for place in plan.places.values()} == {
        "a": "1h", "b": "15m"
    }  # fmt: skip
    assert (plan.of_settings, len(plan.schedules), plan.list_idle_rules()) == (1, 3, [])
    names(plan.take_due(NOW, 9))
    plan.end(A.id, WELL, NOW)
    assert due_of(plan, A) == NOW + HOUR
    # The manifest changed, and then the schedule of the settings went.
    plan.renew(rules, [replace(own[0], schedule=Schedule(datasets="a", every="15m")), own[1]], NOW)
    assert due_of(plan, A) == NOW + 15 * MINUTE
    plan.end(B.id, WELL, NOW)
    plan.renew((), [A, own[1]], NOW)
    assert (set(plan.places), due_of(plan, B)) == ({B.id}, NOW + 15 * MINUTE)


def test_who_has_been_due_longest_is_first_and_no_more_begin_than_may() -> None:
    """SCHED-7."""
    plan = table(A, B, C)
    for each, ago in ((A, 1), (B, 3), (C, 2)):
        plan.places[each.id].standing = Standing(due_ms=NOW - ago, ended_ms=0, result=RunOutcome.UPDATED)
    assert names(plan.take_due(NOW, 2)) == ["b", "c"]
    assert plan.take_due(NOW, 2) == []
    plan.end(C.id, WELL, NOW)
    assert names(plan.take_due(NOW, 2)) == ["a"]


def test_ten_thousand_datasets_each_second_all_have_their_turn() -> None:
    many = [candidate(f"n{number:05}") for number in range(10_000)]
    plan = table(*many, schedules=(Schedule(datasets="%", every="1s"),))
    seen: list[str] = []
    for step in range(20):
        taken = plan.take_due(NOW + step * 1000, 64)
        seen += names(taken)
        for each in taken:
            plan.end(each.id, WELL, NOW + step * 1000)
    assert len(seen) == len(set(seen)) == 1_280


def test_one_host_is_asked_by_one_pull_at_a_time() -> None:
    one, other = candidate("one", host="data.example"), candidate("other", host="data.example")
    plan = table(one, other, C)
    assert names(plan.take_due(NOW, 3)) == ["c", "one"]
    plan.end(one.id, AWAY, NOW)
    assert names(plan.take_due(NOW, 3)) == ["other"]


ONE, OTHER = candidate("one", host="data.example"), candidate("other", host="data.example")
SLOW = Schedule(datasets="%", every="1s")


def test_host_with_a_pause_is_left_alone_between_two_pulls() -> None:
    """SCHED-12: from the end of one to the beginning of the next, whatever datasets they are of; others go on."""
    plan = table()
    plan.renew((SLOW,), [ONE, OTHER, C], NOW, (HostSettings(at="%.org data.example", pause="1m"),))
    assert names(plan.take_due(NOW, 3)) == ["c", "one"]
    plan.end(ONE.id, WELL, NOW + 5_000)
    plan.end(C.id, WELL, NOW + 5_000)
    assert names(plan.take_due(NOW + 5_000 + MINUTE - 1, 3)) == ["c"]
    assert plan.find_next_due_ms(NOW + 5_000 + MINUTE - 1) == NOW + 5_000 + MINUTE
    assert names(plan.take_due(NOW + 5_000 + MINUTE, 3)) == ["other"]


@pytest.mark.parametrize(
    ("sources", "declared", "pause_ms"),
    [
        ((), None, 0),
        ((), "2m", 2 * MINUTE),
        (
            (HostSettings(at="other.example", pause="1m"), HostSettings(at="%.EXAMPLE", pause="3m")),
            None,
            3 * MINUTE,
        ),
        ((HostSettings(at="%", pause="1m"), HostSettings(at="data.example", pause="3m")), None, MINUTE),
        ((HostSettings(at="mqtt: HTTPS:", pause="1m"),), "2m", 2 * MINUTE),
        ((HostSettings(at="mqtt: https:", pause="3m"),), "2m", 3 * MINUTE),
        ((HostSettings(at="mqtt: data", pause="3m"),), None, 0),
    ],
)
def test_pause_of_a_host_is_the_longest_of_what_operator_and_datasets_state(
    sources: tuple[HostSettings, ...], declared: str | None, pause_ms: int
) -> None:
    plan = table()
    plan.renew((replace(SLOW, pause=declared),), [replace(ONE, scheme="https"), C], NOW, sources)
    assert plan.rests.pauses_ms == ({"data.example": pause_ms} if pause_ms else {})


@pytest.mark.parametrize(("asked_s", "rest_ms"), [(90, 90_000), (10**9, LONGEST_REST_MS)])
def test_host_that_asks_to_be_left_alone_is_so_for_all_datasets_but_not_for_ever(asked_s: int, rest_ms: int) -> None:
    plan = table(ONE, OTHER, schedules=(SLOW,))
    plan.take_due(NOW, 3)
    plan.end(ONE.id, replace(AWAY, rest_s=asked_s), NOW)
    plan.renew((SLOW,), [ONE, OTHER], NOW + 1)
    assert plan.take_due(NOW + rest_ms - 1, 3) == []
    assert names(plan.take_due(NOW + rest_ms, 3)) == ["other"]


def test_clock_that_was_set_back_lengthens_no_rest() -> None:
    plan = table(ONE, schedules=(SLOW,))
    plan.take_due(NOW, 3)
    plan.end(ONE.id, replace(AWAY, rest_s=600), NOW)
    plan.renew((SLOW,), [ONE], NOW - 366 * DAY)
    assert plan.rests.find_end_ms("data.example") == NOW - 366 * DAY + 10 * MINUTE
    plan.renew((SLOW,), [ONE], NOW)
    assert plan.rests.of_hosts == {}


def test_those_that_failed_leave_one_place_to_the_others() -> None:
    plan = table(A, B, C)
    for each in (A, B):
        plan.places[each.id].standing = Standing(due_ms=NOW - 9, ended_ms=0, result=RunOutcome.FAILED)
    plan.places[C.id].standing = Standing(due_ms=NOW - 1, ended_ms=0, result=RunOutcome.UPDATED)
    assert names(plan.take_due(NOW, 2)) == ["a", "c"]


def test_failing_dataset_has_the_only_place_where_there_is_one() -> None:
    plan = table(A)
    plan.places[A.id].standing = Standing(due_ms=NOW, ended_ms=0, result=RunOutcome.FAILED)
    assert names(plan.take_due(NOW, 1)) == ["a"]


def test_pull_that_does_not_end_gives_its_place_but_is_not_begun_again() -> None:
    plan = table(A, B)
    assert names(plan.take_due(NOW, 1)) == ["a"]
    assert plan.take_due(NOW, 1) == []
    plan.leave(A.id)
    assert names(plan.take_due(NOW + DAY, 1)) == ["b"]
    plan.end(B.id, WELL, NOW + DAY)
    assert names(plan.take_due(NOW + 2 * DAY, 2)) == ["b"]


def test_unavailable_is_tried_again_and_then_waits_for_the_next_regular_time() -> None:
    """SCHED-5."""
    plan, now, waits = table(A), NOW, []
    for _ in range(MAX_ATTEMPTS):
        assert names(plan.take_due(now, 2)) == ["a"]
        standing = plan.end(A.id, AWAY, now)
        assert standing.due_ms is not None
        waits.append((standing.due_ms - now) // MINUTE)
        before, now = now, standing.due_ms
    assert waits == [1, 2, 4, 8, 15]
    assert (standing.result, standing.attempts, standing.text) == (RunOutcome.FAILED, 0, AWAY.text)
    assert standing.due_ms == before + 15 * MINUTE
    plan.take_due(now, 2)
    assert not plan.end(A.id, WELL, now).is_failing


def test_failing_source_of_a_schedule_of_each_second_is_not_asked_each_second() -> None:
    plan = table(A, schedules=(Schedule(datasets="a", every="1s"),))
    asked = 0
    for second in range(600):
        plan.renew(plan.schedules, [A], NOW + second * 1000)
        for each in plan.take_due(NOW + second * 1000, 2):
            asked += 1
            plan.end(each.id, AWAY, NOW + second * 1000)
    assert asked == 4


def test_what_would_fail_again_waits_for_the_next_regular_time_at_once() -> None:
    plan = table(A)
    plan.take_due(NOW, 2)
    standing = plan.end(A.id, WRONG, NOW + MINUTE)
    assert standing == Standing(NOW + 16 * MINUTE, 0, NOW + MINUTE, RunOutcome.FAILED, "no such column")


def test_reason_of_a_failure_is_bounded() -> None:
    plan = table(A)
    plan.take_due(NOW, 2)
    assert len(plan.end(A.id, RunEnded(RunOutcome.FAILED, "x" * 1_000_000), NOW).text) == 500


def test_missed_times_are_made_up_for_once() -> None:
    plan = Timetable({A.id: Standing(due_ms=NOW - 100 * DAY, ended_ms=NOW - 101 * DAY, result=RunOutcome.UPDATED)})
    plan.renew((QUARTER,), [A], NOW)
    assert names(plan.take_due(NOW, 2)) == ["a"]
    plan.end(A.id, WELL, NOW)
    assert plan.take_due(NOW + 1, 2) == []


@pytest.mark.parametrize("result", [WELL, AWAY, WRONG])
@pytest.mark.parametrize("schedule", [QUARTER, Schedule(datasets="a", cron="0 * * * *")])
def test_clock_that_was_far_ahead_keeps_nothing_waiting(schedule: Schedule, result: RunEnded) -> None:
    plan = table(A, schedules=(schedule,))
    year = NOW + 366 * DAY
    plan.renew((schedule,), [A], year)
    assert len(plan.take_due(year, 2)) == 1
    plan.end(A.id, result, year)
    plan.renew((schedule,), [A], NOW)
    due_ms = due_of(plan, A)
    assert due_ms is not None
    assert due_ms <= NOW + HOUR + MINUTE


def test_clock_at_the_end_of_all_years_ends_nothing() -> None:
    end = 253_402_300_799_000
    plan = table(A, B, schedules=(Schedule(datasets="a", every="366d"), Schedule(datasets="b", cron="0 0 * * *")))
    plan.renew(plan.schedules, [A, B], end)
    for each in plan.take_due(end, 2):
        plan.end(each.id, WELL, end)
    plan.renew(plan.schedules, [A, B], NOW)
    assert all(place.standing.due_ms is not None for place in plan.places.values())


def test_schedule_that_became_shorter_holds_at_once() -> None:
    plan = table(A, schedules=(Schedule(datasets="a", every="30d"),))
    plan.take_due(NOW, 2)
    plan.end(A.id, WELL, NOW)
    plan.renew((QUARTER,), [A], NOW + MINUTE)
    assert due_of(plan, A) == NOW + 16 * MINUTE


def test_derivatives_follow_what_they_rest_on_down_to_the_last() -> None:
    """SCHED-8."""
    first = candidate("first", A)
    second = candidate("second", first)
    plan = table(A, first, second, candidate("apart", B), schedules=(Schedule(datasets="a", every="15m"),))
    assert sorted(place.candidate.name for place in plan.places.values()) == ["a", "first", "second"]
    order = []
    for _ in range(3):
        (taken,) = plan.take_due(NOW, 2)
        order.append(taken.name)
        plan.end(taken.id, WELL, NOW)
    assert order == ["a", "first", "second"]
    assert plan.take_due(NOW, 2) == []


def test_derivatives_stay_behind_where_the_schedule_says_so_or_the_pull_failed() -> None:
    first = candidate("first", A)
    alone = Schedule(datasets="a", every="15m", derivatives=False)
    for schedules, ended in (((alone,), WELL), ((replace(alone, derivatives=True),), WRONG)):
        plan = table(A, first, schedules=schedules)
        plan.take_due(NOW, 2)
        plan.end(A.id, ended, NOW)
        assert plan.take_due(NOW, 2) == []


def test_derivative_that_runs_while_its_input_grows_runs_once_more() -> None:
    both = candidate("both", A, B)
    plan = table(A, B, both, schedules=(Schedule(datasets="a b", every="15m"),))
    plan.take_due(NOW, 2)
    plan.end(A.id, WELL, NOW)
    assert names(plan.take_due(NOW, 2)) == ["both"]
    plan.end(B.id, WELL, NOW)
    assert plan.take_due(NOW, 2) == []
    plan.end(both.id, WELL, NOW)
    assert names(plan.take_due(NOW, 2)) == ["both"]


def test_derivative_that_waits_for_what_is_unavailable_is_not_hurried_by_its_input() -> None:
    first = candidate("first", A)
    plan = table(A, first, schedules=(Schedule(datasets="a", every="1s"),))
    plan.take_due(NOW, 2)
    plan.end(A.id, WELL, NOW)
    assert names(plan.take_due(NOW, 2)) == ["first"]
    plan.end(first.id, AWAY, NOW)
    plan.take_due(NOW + 1000, 2)
    plan.end(A.id, WELL, NOW + 1000)
    assert due_of(plan, first) == NOW + MINUTE


def test_deleted_dataset_is_gone_and_one_that_runs_ends_in_peace() -> None:
    plan = table(A, B)
    assert len(plan.take_due(NOW, 2)) == 2
    plan.end(B.id, WELL, NOW)
    plan.renew((), [], NOW)
    assert list(plan.places) == [A.id]
    plan.end(A.id, WELL, NOW)
    plan.renew((), [], NOW)
    assert plan.places == {}


@given(
    st.lists(
        st.tuples(
            st.integers(-400 * DAY, 400 * DAY),
            st.sampled_from([WELL, AWAY, WRONG]),
            st.sampled_from(["1s", "15m", "1d"]),
        ),
        max_size=30,
    )
)
def test_whatever_clocks_do_the_next_pull_is_never_further_than_the_schedule_or_a_retry(
    steps: list[tuple[int, RunEnded, str]],
) -> None:
    plan, now = table(A), NOW
    for jump, ended, every in steps:
        now += jump
        schedule = Schedule(datasets="a", every=every)
        plan.renew((schedule,), [A], now)
        due_ms = due_of(plan, A)
        assert due_ms is not None
        assert due_ms <= now + max(DAY + MINUTE, LONGEST_WAIT_MS)
        for each in plan.take_due(now, 1):
            plan.end(each.id, ended, now)


def of(priority: str, datasets: str, every: str = "1d") -> Schedule:
    return Schedule(datasets=datasets, every=every, priority=priority)


def test_priority_goes_before_what_has_been_due_longer() -> None:
    """SCHED-7."""
    plan = table(A, B, C, schedules=(of("low", "a"), of("normal", "b"), of("high", "c")))
    assert [names(plan.take_due(NOW + number, number)) for number in (1, 2, 3)] == [["c"], ["b"], ["a"]]


def test_priority_is_a_quarter_of_an_hour_and_no_more() -> None:
    """SCHED-7."""
    schedules = (of("low", "a"), of("normal", "b"), of("high", "c"))
    for later, first in ((15 * MINUTE - 1, "b"), (15 * MINUTE + 1, "a")):
        plan = table(A, schedules=schedules)
        plan.renew(schedules, [A, B], NOW + later)
        assert names(plan.take_due(NOW + later, 1)) == [first]


def test_derivative_has_the_priority_of_what_it_follows() -> None:
    """SCHED-7."""
    late, urgent = candidate("a.late", A), candidate("z.urgent", C)
    plan = table(A, C, late, urgent, schedules=(of("low", "a"), of("high", "c")))
    for each in plan.take_due(NOW, 2):
        plan.end(each.id, WELL, NOW)
    assert names(plan.take_due(NOW, 9)) == ["z.urgent", "a.late"]


@given(st.integers(1, 12), st.integers(1, 3))
def test_nothing_waits_for_ever_behind_a_higher_priority(urgent: int, at_once: int) -> None:
    """SCHED-7: a place is never free for long, as what has priority is due again each second."""
    takes, high = 10_000, [candidate(f"high{number}") for number in range(urgent)]
    plan, now = table(A, *high, schedules=(of("low", "a", "1m"), of("high", "high%", "1s"))), NOW
    ends: list[tuple[int, DueCandidate]] = []
    waited = []
    since = NOW
    for _ in range(3_000):
        for each in plan.take_due(now, at_once):
            ends.append((now + takes, each))
            if each == A:
                waited.append(now - since)
        due_ms = plan.find_next_due_ms(now)
        now = min([end_ms for end_ms, _ in ends] + ([due_ms] if due_ms is not None else []))
        for ended in [end for end in ends if end[0] <= now]:
            ends.remove(ended)
            plan.end(ended[1].id, WELL, now)
            since = due_of(plan, A) or now if ended[1] == A else since
    assert waited
    assert max(waited) <= 30 * MINUTE + (urgent + 1) * takes


@given(st.integers(0, 12), st.integers(2, 4), st.integers(0, 10_000))
def test_sources_that_hang_for_ever_hold_up_good_ones_once_at_most(hanging: int, at_once: int, seed: int) -> None:
    """Each pull of a hanging source is ended after an hour, again and again; one of a good one takes ten seconds."""
    limit, takes = HOUR, 10_000
    bad, good = [candidate(f"{seed % 7}{n}") for n in range(hanging)], [candidate(f"3good{n}") for n in range(20)]
    plan, now = table(*bad, *good), NOW
    ends: list[tuple[int, str, DueCandidate]] = []
    last, gaps = {each.name: NOW for each in good}, []
    for _ in range(1_500):
        taken = plan.take_due(now, at_once)
        ends += [(now + (limit if each in bad else takes), each.name, each) for each in taken]
        assert len(ends) <= at_once
        ends.sort(reverse=True, key=lambda end: end[:2])
        due_ms = plan.find_next_due_ms(now)
        if not ends or (due_ms is not None and due_ms < ends[-1][0]):
            assert due_ms is not None
            now = due_ms
            continue
        now, name, each = ends.pop()
        plan.end(each.id, RunEnded(RunOutcome.FAILED, "too slow") if each in bad else WELL, now)
        if each in good:
            gaps.append((last[name], now - last[name]))
            last[name] = now
    known = NOW + (hanging // at_once + 1) * limit  # by then each of them has failed once
    assert max(gap for began, gap in gaps if began > known) <= 15 * MINUTE + len(good) * takes
