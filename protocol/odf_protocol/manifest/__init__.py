"""Manifests: ODF objects as YAML and JSON for people.

A **manifest** is a document ``{kind, version, content}``. A **snapshot** defines a new dataset, an **event** manifest
holds one event, a **block** manifest shows a block. Text goes in and objects come out, or the other way; no I/O here.

* reading: text → nodes with positions (``yaml_text``, ``json_text``) → objects by declaration (``reading``) → rules
  (``snapshot_rules``). Errors name file, line, column, field path, what was expected, what was found, and the nearest
  known word.
* writing: objects → plain tree → text (``writing``).

This package brings PyYAML; nothing else of the protocol does.
"""

from odf_protocol.manifest.documents import BlockManifest, DatasetSnapshot, Manifest
from odf_protocol.manifest.errors import ManifestError, SnapshotError
from odf_protocol.manifest.parsing import parse_manifests, parse_snapshots
from odf_protocol.manifest.snapshot_rules import normalize_added_event, normalize_snapshot
from odf_protocol.manifest.templates import (
    MissingVariableError,
    TemplateError,
    find_variables,
    substitute,
    substitute_in_fetch,
)
from odf_protocol.manifest.writing import iter_log_yaml, manifest_to_json, manifest_to_plain, manifest_to_yaml

__all__ = [
    "BlockManifest",
    "DatasetSnapshot",
    "Manifest",
    "ManifestError",
    "MissingVariableError",
    "SnapshotError",
    "TemplateError",
    "find_variables",
    "iter_log_yaml",
    "manifest_to_json",
    "manifest_to_plain",
    "manifest_to_yaml",
    "normalize_added_event",
    "normalize_snapshot",
    "parse_manifests",
    "parse_snapshots",
    "substitute",
    "substitute_in_fetch",
]
