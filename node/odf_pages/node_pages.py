"""Pages about the node itself, for whoever may see what its operator sees.

Source: clauses PAGES-5 and PAGES-15 in ``spec/plug-ins/pages.md``.
"""

from itertools import islice
from typing import Any, Final

from odf_node.acceptance.histories import lay_side_by_side
from odf_node.datasets.quarantined_rows import QuarantineReader
from odf_node.errors import UsageError
from odf_node.keys.disputes import Disputes
from odf_node.wording import rule_in_words
from odf_pages.dataset_pages import frame_of
from odf_pages.rendering import Page
from odf_pages.requests import PageRequest
from odf_protocol.did import DidKey
from odf_protocol.errors import OdfError
from odf_protocol.peer_addresses import decode_peer_record

MAX_FINDINGS: Final = 500  # guess
MAX_ENTRIES: Final = 200  # guess
MAX_REJECTIONS: Final = 200  # guess
MAX_PEERS: Final = 500  # guess
MAX_DISPUTES: Final = 50  # guess
NEWEST_AUDITED: Final = 30  # guess: a screen
PAGE_ROWS: Final = 50


def show_status(visit: PageRequest) -> Page:
    """Show what wants doing, what runs, and what was done."""
    node = visit.node
    findings = node.read_models.make_status(node.refusals).list_findings()
    key = node.keys.find_node_key()
    values = {
        "findings": findings[:MAX_FINDINGS],
        "more": max(0, len(findings) - MAX_FINDINGS),
        "running": visit.running,
        "audited": [*node.store.iter_audit(limit=NEWEST_AUDITED)],
        "identity": None if key is None else DidKey(key.public_key()),
    }
    return Page("status.html", values)


def show_rejections(visit: PageRequest) -> Page:
    """List what was rejected, newest first."""
    reports = [*islice(visit.node.refusals.iter_reports(), MAX_REJECTIONS)]
    return Page("refusals.html", {"reports": [(each, rule_in_words(str(each["rule"]))) for each in reports]})


def show_rejection(visit: PageRequest) -> Page:
    """Show one rejection with the cells that differ."""
    report = visit.node.refusals.get_report(visit.words["refusal"])
    divergence = report.get("divergence") or {}
    values = {
        "report": report,
        "rule": rule_in_words(str(report["rule"])),
        "expected": report.get("expected"),
        "found": report.get("found"),
        "equivocation": report.get("equivocation"),
        "cells": divergence.get("cells") or [],
        "differing_rows": divergence.get("differing_rows"),
    }
    return Page("refusal.html", values)


def show_peers(visit: PageRequest) -> Page:
    """Show other nodes, what is followed by itself, and what is proved against whom."""
    node = visit.node
    disputes = Disputes(node.store)
    proved: list[dict[str, Any]] = []
    for record in node.store.list_datasets():
        for dispute in disputes.list_disputes(record.id):
            if len(proved) < MAX_DISPUTES:
                laid = lay_side_by_side(node.store, node.refusals, record, dispute)
                proved.append({"name": record.name, **laid})
    values = {
        "peers": node.peers.list_peers()[:MAX_PEERS],
        "records": [*_iter_records(visit)],
        "subscriptions": node.store.list_subscriptions()[:MAX_PEERS],
        "heard": len(node.store.list_gossip_items()),
        "proved": proved,
    }
    return Page("peers.html", values)


def _iter_records(visit: PageRequest) -> Any:
    """Yield what nodes that were heard of say of themselves, as far as it still holds."""
    now = visit.node.clock.now()
    for raw in visit.node.store.list_peer_records()[:MAX_PEERS]:
        try:
            record = decode_peer_record(raw)
        except OdfError:
            continue
        if record.expires > now:
            yield record


def show_quarantine(visit: PageRequest) -> Page:
    """Show what ingests of a dataset set aside, with every error."""
    record, node = visit.get_dataset(), visit.node
    reader = QuarantineReader(node.store, node.objects)
    entries = [*reversed(reader.list_entries(record))][:MAX_ENTRIES]
    chosen = visit.find_number("entry")
    if chosen is None and entries:
        chosen = entries[0].id
    elif chosen is not None and chosen not in {entry.id for entry in entries}:
        raise UsageError(f"'{record.name}' has no entry {chosen} in its quarantine")
    first = visit.find_number("from") or 0
    if chosen is not None:
        node.store.access.note_read(record, what="quarantine")
    found = [] if chosen is None else reader.iter_rows(record, entries=[chosen])
    rows = [*islice(found, first, first + PAGE_ROWS + 1)]
    values = {
        "entries": [(entry, reader.count_waiting(entry)) for entry in entries],
        "chosen": chosen,
        "rows": rows[:PAGE_ROWS],
        "first": first,
        "older": max(0, first - PAGE_ROWS) if first else None,
        "further": first + PAGE_ROWS if len(rows) > PAGE_ROWS else None,
    }
    return Page("quarantine.html", {**frame_of(visit, record, "quarantine"), **values})
