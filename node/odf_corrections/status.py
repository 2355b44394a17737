"""What ``odf-node status`` says of sinks for which entries of quarantine wait (SINK-3).

``REPORT`` is found by its entry point in the group ``odf_node.status``.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from odf_corrections.sinking import list_waiting
from odf_node.home import Home
from odf_node.upkeep.status_findings import Condition, StatusFinding, StatusReport
from odf_protocol.errors import OdfError


def iter_findings(home: Home) -> Iterator[StatusFinding]:
    """Yield a line for each sink that did not have all entries yet."""
    quarantined = home.store.list_datasets_with_quarantine()
    for record in home.store.list_datasets() if quarantined else ():
        if record.id not in quarantined:
            continue
        with suppress(OdfError):  # 'verify' says what is wrong with its rules
            for sink, count in list_waiting(home.store, home.folder.cache, record):
                entries = "1 entry waits" if count == 1 else f"{count:,} entries wait"
                what = f"{entries} for the sink {sink}, which 'odf-node serve' gives it, or this command"
                yield StatusFinding(Condition.WAITING, record.name, what, f"odf-node quarantine deliver {record.name}")


REPORT: Final = StatusReport(iter_findings)
