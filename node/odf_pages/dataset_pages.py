"""Pages about datasets: which there are, what one declares, its versions, what it rests on.

Source: clauses PAGES-9 and PAGES-10 in ``spec/plug-ins/pages.md``.
"""

from itertools import islice
from typing import Any, Final

from odf_node.datasets.chains import load_view
from odf_node.derive.chain_log import describe_event
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.errors import BlockNotFoundError, DatasetNotFoundError
from odf_node.upkeep.listing import ListedDataset
from odf_pages.rendering import Page
from odf_pages.requests import PageRequest
from odf_pages.texts import without_hidden
from odf_protocol.dataset_view import DatasetView
from odf_protocol.enums import DatasetKind
from odf_protocol.manifest import iter_log_yaml
from odf_protocol.policy import Trust
from odf_protocol.schema_compat import describe_type

PAGE_DATASETS: Final = 100  # guess: some screens
PAGE_BLOCKS: Final = 50  # guess
PAGE_COLUMNS: Final = 200  # guess
MAX_ATTACHMENTS: Final = 20  # guess
MAX_STATEMENTS: Final = 200  # guess
MAX_YAML: Final = 100_000
"""Characters of a block that are shown.  # guess: a schema of a thousand columns"""

_BADGES: Final = {
    Trust.OWN: "own",
    Trust.REEXECUTED: "proved",
    Trust.ATTESTED: "attested",
    Trust.SIGNED: "signed",
    Trust.UNSIGNED: "weak",
    Trust.METADATA: "weak",
}


def badge_of(summary: ListedDataset) -> str:
    """Name the look of what a dataset rests on; the words beside it say the same."""
    if summary.ground == "FROZEN":
        return "frozen"
    if summary.not_checked or summary.ground != summary.record.trust.value:
        return "weak"  # partial, or taken unchecked
    return _BADGES[summary.record.trust]


def frame_of(visit: PageRequest, record: DatasetRecord, tab: str) -> dict[str, Any]:
    """Give what stands at the top of every page about a dataset."""
    summary = next(iter(visit.node.read_models.listing.summarize([record])), None)
    if summary is None:  # deleted meanwhile
        raise DatasetNotFoundError("of this name")
    # Nothing else is ever ingested here, so nothing else has rows that could not be taken.
    has_quarantine = record.origin is Origin.OWN and record.kind is DatasetKind.ROOT
    badge = badge_of(summary)
    return {"record": record, "summary": summary, "badge": badge, "tab": tab, "has_quarantine": has_quarantine}


def show_list(visit: PageRequest) -> Page:
    """List the datasets, a page at a time, those alone whose names have the words that were asked for."""
    after, words = (without_hidden(visit.get_text(name)[:200]) for name in ("after", "find"))
    wanted = words.casefold().split()
    records = [
        record
        for record in visit.list_datasets()
        if record.name > after and all(word in record.name.casefold() for word in wanted)
    ]
    shown = records[:PAGE_DATASETS]
    listing = visit.node.read_models.listing
    rows = [(summary, badge_of(summary)) for summary in listing.summarize(shown)]
    next_after = shown[-1].name if len(records) > len(shown) else None
    return Page("datasets.html", {"rows": rows, "find": words, "after": after, "next_after": next_after})


def show_overview(visit: PageRequest) -> Page:
    """Show what a dataset says of itself: description, licence, columns, where its rows come from."""
    record = visit.get_dataset()
    view = load_view(visit.node.store, record.id)
    columns = [] if view.schema is None else view.schema.fields
    first = visit.find_number("columns") or 0
    fields = [(field.name, describe_type(field.type)) for field in columns[first : first + PAGE_COLUMNS]]
    attachments = () if view.attachments is None else view.attachments.attachments.items[:MAX_ATTACHMENTS]
    return Page(
        "overview.html",
        {
            **frame_of(visit, record, "overview"),
            "view": view,
            "fields": fields,
            "first": first,
            "column_count": len(columns),
            "page_columns": PAGE_COLUMNS,
            "attachments": attachments,
            "source": _describe_source(view),
        },
    )


def _describe_source(view: DatasetView) -> str:
    if view.transform is not None:
        return f"a query for the engine {view.transform.transform.engine}"
    sources = [type(view.polling_source.fetch).__name__.removeprefix("FetchStep")] if view.polling_source else []
    sources += [f"pushes to '{name}'" for name in view.push_sources]
    return ", ".join(sources) or "no source is declared"


def show_versions(visit: PageRequest) -> Page:
    """List the blocks of a dataset, newest first."""
    record, node = visit.get_dataset(), visit.node
    newest = visit.find_number("newest")
    newest = record.head.sequence_number if newest is None else min(newest, record.head.sequence_number)
    blocks = [
        (each, describe_event(each.block.event))
        for each in node.read_models.chain_log.read(record, limit=PAGE_BLOCKS, newest=newest)
    ]
    older = newest - PAGE_BLOCKS
    values = {"blocks": blocks, "newest": newest, "older": older if older >= 0 else None, "page_blocks": PAGE_BLOCKS}
    return Page("versions.html", {**frame_of(visit, record, "versions"), **values})


def show_version(visit: PageRequest) -> Page:
    """Show one block whole."""
    record, node = visit.get_dataset(), visit.node
    number = visit.get_number_of_path("number")
    if number > record.head.sequence_number:
        raise UsageError(f"'{record.name}' has no block {number}")
    logged = next(node.read_models.chain_log.read(record, limit=1, newest=number), None)
    if logged is None:
        raise BlockNotFoundError(record.id, number)
    text = "".join(islice(_cut(iter_log_yaml([logged.block])), MAX_YAML))
    values = {"logged": logged, "yaml": text, "max_yaml": MAX_YAML, "what": describe_event(logged.block.event)}
    return Page("version.html", {**frame_of(visit, record, "versions"), **values})


def _cut(chunks: Any) -> Any:
    left = MAX_YAML
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def show_trust(visit: PageRequest) -> Page:
    """Show what a dataset rests on: what was found at each acceptance, who attests it, what to worry about."""
    record = visit.get_dataset()
    grounds = visit.node.read_models.grounds.read(record)
    values = {
        "grounds": grounds,
        "acceptances": [*reversed(grounds.acceptances)][:MAX_STATEMENTS],
        "statements": grounds.statements[:MAX_STATEMENTS],
        "more": max(0, len(grounds.statements) - MAX_STATEMENTS),
    }
    return Page("trust.html", {**frame_of(visit, record, "trust"), **values})
