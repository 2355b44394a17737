"""What every ``AuditLog`` must do; ``store`` is each adapter in turn."""

from odf_node.ports import (
    AuditEntry,
    Outcome,
)
from support.store_values import (
    NOON,
)
from support.stores import Store


def test_audit_shows_the_newest_lines_first(store: Store) -> None:
    entries = [
        AuditEntry(at=NOON, actor="cli", command=f"pull {n}", subject="d", outcome=Outcome.DONE, detail="x")
        for n in range(3)
    ]
    for entry in entries:
        store.append_audit(entry)
    assert list(store.iter_audit(limit=2)) == [entries[2], entries[1]]
