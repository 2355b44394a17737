"""Root datasets with descriptions, keywords and columns, for those who search."""

from collections.abc import Iterable
from pathlib import Path

from odf_node.cli.main import main

_MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: {}
  kind: Root
  metadata:
    - kind: SetInfo
      description: {}
      keywords: [{}]
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, ddlSchema: [{}]}}
      merge: {{kind: Append}}
"""


def add_described(home: Path, datasets: Iterable[tuple[str, str, str, str]]) -> None:
    """Add datasets to a home: name, description, keywords and columns of each."""
    manifest = home.with_name("all.yaml")
    manifest.write_text("---\n".join(_MANIFEST.format(*each) for each in datasets))
    assert main(["--home", str(home), "add", str(manifest)]) == 0
