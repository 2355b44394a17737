"""Clause SANDBOX-8: processor time of a tree of processes, whatever its processes do to hide it."""

import subprocess
from itertools import pairwise

from odf_engines.sandbox.resources import Activity, CpuMeter, LastingExcess, Usage, activity_of


def look(cpu_s: float, **own_cpu_s: float) -> Usage:
    """A look at a tree: what the kernel adds up, and each process alone."""
    own = {(number, name): spent for number, (name, spent) in enumerate(sorted(own_cpu_s.items()))}
    return Usage(0, len(own), cpu_s, {(0, name): spent for (_, name), spent in own.items()})


def spent_after(*looks: Usage) -> float:
    meter = CpuMeter()
    for each in looks:
        meter.add(each)
    return meter.spent_s


def test_processes_side_by_side_are_added_up() -> None:
    assert spent_after(look(3.0, a=1.0, b=2.0)) == 3.0


def test_children_that_were_waited_for_count_although_nobody_saw_them() -> None:
    assert spent_after(look(1.0, parent=1.0), look(9.0, parent=1.5)) == 9.0


def test_children_that_nobody_waited_for_count_as_far_as_they_were_seen() -> None:
    looks = (look(1.0, parent=1.0), look(3.0, parent=1.0, a=2.0), look(4.0, parent=1.0, b=3.0), look(1.0, parent=1.0))
    assert spent_after(*looks) == 6.0


def test_child_that_was_seen_and_waited_for_counts_once() -> None:
    assert spent_after(look(3.0, parent=1.0, a=2.0), look(3.0, parent=1.0)) == 3.0


def test_process_that_one_look_misses_counts_once() -> None:
    looks = (look(3.0, parent=1.0, a=2.0), look(1.0, parent=1.0), look(3.5, parent=1.0, a=2.5))
    assert spent_after(*looks) == 3.5


def test_processes_that_ended_long_ago_count_although_they_are_forgotten() -> None:
    looks = (Usage(0, 100, 100.0, {(number, str(start)): 1.0 for number in range(100)}) for start in range(100))
    assert spent_after(*looks) == 100 * 100


def test_time_never_decreases() -> None:
    meter = CpuMeter()
    meter.add(look(5.0, a=5.0))
    meter.add(look(0.0))
    assert meter.spent_s == 5.0


def test_activity_changes_when_a_process_of_the_tree_begins_ends_or_runs() -> None:
    script = """
    echo ready; read x
    sleep 60 & echo began; read x
    kill $!; wait; echo ended; read x
    i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo ran; read x
    """
    seen = []
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        for word in ("ready", "began", "ended", "ran"):
            assert shell.stdout.readline() == f"{word}\n"
            seen.append(activity_of(shell.pid))
            shell.stdin.write("\n")
            shell.stdin.flush()
    assert [len(each.process_ids) for each in seen] == [1, 2, 1, 1]
    assert all(one != next_one for one, next_one in pairwise(seen))
    assert seen[3].ticks > seen[2].ticks


def test_tree_has_hardly_run_while_it_has_the_same_processes_and_few_more_ticks() -> None:
    before = Activity((1, 2), 100)
    assert Activity((1, 2), 120).has_hardly_run(before, 20)
    assert not Activity((1, 2), 121).has_hardly_run(before, 20)
    assert not Activity((1, 2, 3), 100).has_hardly_run(before, 20)
    assert not Activity((1,), 100).has_hardly_run(before, 20)


def crossed_at(*looks: tuple[float, int]) -> list[bool]:
    """Say at which looks, of a time and a figure each, a limit of 100 counts as crossed."""
    times = iter([at_s for at_s, found in looks if found > 100])
    excess = LastingExcess(100, lambda: next(times))
    return [excess.is_crossed(found) for _, found in looks]


def test_more_than_is_allowed_counts_after_a_second_as_a_fork_shows_its_parents() -> None:
    assert crossed_at((0.0, 150), (0.2, 150), (0.4, 150), (0.6, 150), (1.0, 150)) == [False] * 4 + [True]


def test_more_than_is_allowed_counts_anew_after_a_look_at_less() -> None:
    assert crossed_at((0.0, 150), (0.2, 100), (1.2, 150), (1.4, 150), (1.6, 150)) == [False] * 5


def test_more_than_a_fork_can_show_counts_at_once() -> None:
    assert crossed_at((0.0, 200), (0.2, 201)) == [False, True]


def test_two_looks_between_which_who_looks_was_stopped_are_not_enough() -> None:
    assert crossed_at((0.0, 150), (60.0, 150), (60.2, 150)) == [False, False, True]
