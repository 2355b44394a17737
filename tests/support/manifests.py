"""The one manifest that a text holds."""

from typing import Any

from odf_protocol.manifest import parse_manifests


def parse_manifest(text: str | bytes, *, source_name: str) -> Any:
    """Read a text of one document, whatever its kind."""
    (found,) = parse_manifests(text, source_name=source_name)
    return found
