"""Histories of a dataset that were replaced by others."""

from typing import Any

from odf_node.cli.context import Context
from odf_node.ports import DatasetRecord


def show_histories(context: Context, record: DatasetRecord, *, as_json: bool) -> None:
    """Show each, with its blocks, and what it was replaced by."""
    commits, console = context.node.commits, context.console
    found: list[dict[str, Any]] = [
        {
            "replacedAt": str(history.replaced_at),
            "by": history.source_url,
            "after": history.after,
            "head": str(history.head.hash),
            "replacedBy": str(history.replaced_by.hash),
            "blocks": [str(block.hash) for block in commits.iter_replaced_blocks(history)],
        }
        for history in commits.list_replaced_histories(record.id)
    ]
    if as_json:
        console.json(found)
        return
    if not found:
        console.text(f"{record.name}: no history was replaced")
    for entry in found:
        console.text(f"{entry['replacedAt']}  replaced behind block {entry['after']} by what {entry['by']} offered")
        console.text(f"  now      {entry['replacedBy']}")
        console.text("\n".join(f"  replaced {block}" for block in reversed(entry["blocks"])))
