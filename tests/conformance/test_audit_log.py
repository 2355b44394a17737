"""The audit log in the store of a home."""

from odf_node.records.audit import AuditEntry, Outcome
from odf_node.store import MetadataStore
from support.store_values import (
    NOON,
)


def test_audit_shows_the_newest_lines_first(store: MetadataStore) -> None:
    entries = [
        AuditEntry(at=NOON, actor="cli", command=f"pull {n}", subject="d", outcome=Outcome.DONE, detail="x")
        for n in range(3)
    ]
    for entry in entries:
        store.append_audit(entry)
    assert list(store.iter_audit(limit=2)) == [entries[2], entries[1]]
