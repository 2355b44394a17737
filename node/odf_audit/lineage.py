"""Recorded runs as events of OpenLineage: what each read and wrote, and with which code.

The form is that of the events that are sent while work runs (OBSERVE-7 to OBSERVE-9); no library is needed to write it.

Source: clause AUDIT-17 in ``spec/plug-ins/audit.md``; OpenLineage 2-0-2, ``OpenLineage.json``.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from odf_audit.lookups import MAX_RECORDS, AuditLookups, AuditRecord, Program
from odf_node import __version__
from odf_node.home import Home
from odf_node.records.errors import mapped_os_errors

_PRODUCER: Final = f"urn:odf-node:{__version__}"
_SCHEMA: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_VERSION_FACET: Final = "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json"
_SYMLINKS_FACET: Final = "https://openlineage.io/spec/facets/1-0-1/SymlinksDatasetFacet.json"
_RUN_FACET: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet"
_PROGRAM_MEMBERS: Final = ("user", "host", "pid", "script", "scriptHash", "gitCommit", "python", "version", "rerunOf")


def write_lineage(home: Home, lookups: AuditLookups, namespace: str, target: Path) -> int:
    """Write two events of each run, its start and its end, into a new file; returns how many.

    Raises:
        OdfError: The file exists, or cannot be written; nothing is left of it.
    """
    runs = dict.fromkeys(row.entry.subject for row in home.store.list_records("run", MAX_RECORDS))
    count = 0
    with mapped_os_errors(target), os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        try:
            for run in runs:
                for event in make_events(run, lookups.get_program(run), lookups.list_of_run(run), namespace):
                    file.write(f"{json.dumps(event, separators=(',', ':'))}\n")
                    count += 1
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return count


def make_events(run: str, program: Program, found: Iterable[AuditRecord], namespace: str) -> list[dict[str, Any]]:
    """Make the events of a run; none where nothing that it read or wrote is recorded."""
    accesses = [*found]
    if not accesses:
        return []
    written = [each for each in accesses if each.row.entry.command == "write"]
    inputs = {
        (each.row.entry.subject, each.row.entry.detail): each.told.get("name")
        for each in accesses
        if each not in written
    }
    for access in written:
        for given in access.inputs:
            inputs.setdefault((str(given.get("id")), str(given.get("head"))), given.get("name"))
    told: dict[str, Any] = {name: program.told[name] for name in _PROGRAM_MEMBERS if program.told.get(name) is not None}
    applications = sorted({each.told["application"] for each in accesses if each.told.get("application")})
    told |= {"hasChanges": program.has_changes} if program.has_changes is not None else {}
    told |= {"sparkApplications": applications} if applications else {}
    common = {
        "producer": _PRODUCER,
        "schemaURL": _SCHEMA,
        "run": {
            "runId": str(_id_of(run)),
            "facets": {"odf_program": {"_producer": _PRODUCER, "_schemaURL": _RUN_FACET, **told}},
        },
        "job": {"namespace": namespace, "name": program.name or "odf-node"},
    }
    outputs = {(each.row.entry.subject, each.row.entry.detail): each.told.get("name") for each in written}
    return [
        {"eventType": "START", "eventTime": str(accesses[0].row.entry.at), **common, "inputs": [], "outputs": []},
        {
            "eventType": "COMPLETE",
            "eventTime": str(accesses[-1].row.entry.at),
            **common,
            "inputs": _list_datasets(inputs, namespace),
            "outputs": _list_datasets(outputs, namespace),
        },
    ]


def _id_of(run: str) -> UUID:
    """Give the identity of a run as the event has to have it; in a restored log a run may be called anything."""
    try:
        return UUID(run)
    except ValueError:
        return uuid5(NAMESPACE_URL, run)


def _list_datasets(found: dict[tuple[str, str], Any], namespace: str) -> list[dict[str, Any]]:
    return [
        {
            "namespace": namespace,
            "name": name or subject,
            "facets": {
                "version": {"_producer": _PRODUCER, "_schemaURL": _VERSION_FACET, "datasetVersion": head},
                "symlinks": {
                    "_producer": _PRODUCER,
                    "_schemaURL": _SYMLINKS_FACET,
                    "identifiers": [{"namespace": "odf", "name": subject, "type": "DID"}],
                },
            },
        }
        for (subject, head), name in found.items()
    ]
