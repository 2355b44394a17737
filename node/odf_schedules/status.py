"""What ``odf-node status`` says of schedules (SCHED-9).

``REPORT`` is found by its entry point in the group ``odf_node.status``.
"""

from collections.abc import Iterator
from typing import Final

from odf_node.home import Home
from odf_node.upkeep.status_findings import Condition, StatusFinding, StatusReport
from odf_node.wording import count_of
from odf_schedules.overview import open_overview


def iter_findings(home: Home) -> Iterator[StatusFinding]:
    """Yield what is pulled by itself, and what of it fails."""
    overview = open_overview(home)
    for each in overview.list_datasets():
        if each.standing.is_failing:
            what = f"its pull by schedule failed: {each.why}"
            yield StatusFinding(Condition.FAILING, each.name, what, f"odf-node pull {each.name}")
    for summary in overview.list_schedules():
        if not summary.count and summary.schedule is not None:
            what = f"no own dataset that can be pulled is called '{summary.schedule.datasets}' ({summary.when})"
            yield StatusFinding(Condition.WAITING, None, what, "odf-node list")
            continue
        what = f"{count_of(summary.count, 'dataset')}, {summary.when}, next {summary.next_at or 'never'}"
        yield StatusFinding(Condition.SCHEDULED, None, what, "odf-node schedule")


REPORT: Final = StatusReport(iter_findings)
