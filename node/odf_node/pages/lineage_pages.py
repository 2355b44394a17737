"""The page that says what a dataset is derived from and what is derived from it, by which queries.

Source: clause PAGES-12 in ``spec/extensions/pages.md``.
"""

from itertools import islice
from typing import Final

from odf_node.datasets.chains import load_view
from odf_node.derive.lineage import list_readers, read_lineage
from odf_node.derive.query_history import QuerySpan, list_queries
from odf_node.pages.dataset_pages import frame_of
from odf_node.pages.lineage_drawing import HEIGHT, WIDTH, draw
from odf_node.pages.rendering import Page
from odf_node.pages.visits import Visit
from odf_protocol.did import DatasetId

MOST_DATASETS: Final = 60  # guess: more boxes are no drawing that anybody reads
MOST_LOOKED_AT: Final = 2_000  # guess: datasets that are asked whether they read this one
MOST_QUERIES: Final = 10  # guess


def show_lineage(visit: Visit) -> Page:
    """Draw the lineage of a dataset, list it, and show the query in force and those before."""
    record, chains = visit.get_dataset(), visit.node.chains
    above = read_lineage(chains, record, find=visit.find_dataset, most=MOST_DATASETS)
    others = (each for each in visit.list_datasets() if each.id not in {known.dataset_id for known in above})
    readers = list_readers(chains, islice(others, MOST_LOOKED_AT), record.id, find=visit.find_dataset)
    lineage = [*above, *readers][:MOST_DATASETS]
    is_derived = load_view(chains, record.id).transform is not None
    queries = [*reversed(list_queries(chains, record.id))][:MOST_QUERIES] if is_derived else []
    values = {
        "drawing": draw(lineage, record.id),
        "box": (WIDTH, HEIGHT),
        "above": above,
        "below": readers[:MOST_DATASETS],
        "names": {each.dataset_id: each.name for each in lineage},
        "queries": [(span, _inputs_of(visit, span)) for span in queries],
    }
    return Page("lineage.html", {**frame_of(visit, record, "lineage"), **values})


def _inputs_of(visit: Visit, span: QuerySpan) -> list[tuple[str, DatasetId, str, str]]:
    """Give alias, identity, name and rows of what a query reads; an input that is not for the viewer has no name."""
    found = []
    for item, (dataset_id, rows) in zip(span.declared.inputs, span.read, strict=True):
        record = visit.find_dataset(dataset_id)
        name = "" if record is None else record.name
        found.append((item.alias or "", dataset_id, name, "no rows" if rows is None else str(rows)))
    return found
