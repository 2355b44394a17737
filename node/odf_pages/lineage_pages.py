"""The page that says what a dataset is derived from and what is derived from it, by which queries, with a drawing.

In the drawing data flow to the right, and what is nothing's input stands rightmost. What is said in boxes is cut; the
list beside it says it whole.

Source: clause PAGES-12 in ``spec/plug-ins/pages.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from odf_node.datasets.chains import load_view
from odf_node.derive.lineage import LineageDataset, list_readers, read_lineage
from odf_node.derive.query_history import QuerySpan, list_queries
from odf_pages.dataset_pages import frame_of
from odf_pages.rendering import Page
from odf_pages.requests import PageRequest
from odf_pages.texts import without_hidden
from odf_protocol.did import DatasetId

WIDTH: Final = 220
HEIGHT: Final = 56
GAP_X: Final = 80
GAP_Y: Final = 24
MARGIN: Final = 16
_CHARACTERS: Final = 26  # guess: what fits into a box at 14 pixels


@dataclass(frozen=True, slots=True)
class Box:
    """One dataset of a drawing; sizes in pixels from the upper left corner. ``name`` is empty where it is not here."""

    dataset: LineageDataset
    x: int
    y: int
    is_subject: bool

    @property
    def label(self) -> str:
        """What stands in the first line."""
        return cut(self.dataset.name or "not in this node")

    @property
    def detail(self) -> str:
        """What stands in the second line."""
        each = self.dataset
        return cut(each.trust if each.name else str(each.dataset_id))


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes, the lines between them as SVG paths, and the size of it all."""

    boxes: tuple[Box, ...]
    lines: tuple[str, ...]
    width: int
    height: int


def draw(lineage: Sequence[LineageDataset], subject: DatasetId) -> Drawing:
    """Place the datasets of a lineage."""
    columns: dict[int, list[LineageDataset]] = {}
    depths = _find_depths(lineage)
    for each in lineage:
        columns.setdefault(depths[each.dataset_id], []).append(each)
    tallest = max((len(column) for column in columns.values()), default=0)
    height = 2 * MARGIN + tallest * (HEIGHT + GAP_Y) - GAP_Y
    boxes: dict[DatasetId, Box] = {}
    for depth, column in sorted(columns.items()):
        top = (height - len(column) * (HEIGHT + GAP_Y) + GAP_Y) // 2
        # Beside what they are made of, so that few lines cross.
        column.sort(key=lambda each: _mean([boxes[i.dataset_id].y for i in each.inputs if i.dataset_id in boxes]))
        for place, each in enumerate(column):
            x, y = MARGIN + depth * (WIDTH + GAP_X), top + place * (HEIGHT + GAP_Y)
            boxes[each.dataset_id] = Box(each, x, y, each.dataset_id == subject)
    lines = tuple(
        _line(boxes[item.dataset_id], boxes[each.dataset_id])
        for each in lineage
        for item in each.inputs
        if item.dataset_id in boxes
    )
    width = 2 * MARGIN + (max(columns, default=0) + 1) * (WIDTH + GAP_X) - GAP_X
    return Drawing(tuple(boxes.values()), lines, width, height)


def _find_depths(lineage: Sequence[LineageDataset]) -> dict[DatasetId, int]:
    """Say of each dataset how long the longest way from a root is; a ring, which nobody can make honestly, ends."""
    depths = dict.fromkeys((each.dataset_id for each in lineage), 0)
    for _ in lineage:
        is_settled = True
        for each in lineage:
            depth = max((depths[item.dataset_id] + 1 for item in each.inputs if item.dataset_id in depths), default=0)
            if depth > depths[each.dataset_id] and depth < len(lineage):
                depths[each.dataset_id], is_settled = depth, False
        if is_settled:
            break
    return depths


def _line(source: Box, target: Box) -> str:
    x1, y1 = source.x + WIDTH, source.y + HEIGHT // 2
    x2, y2 = target.x - 8, target.y + HEIGHT // 2
    bend = GAP_X // 2
    return f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def cut(text: str) -> str:
    """Cut a text so that it fits into a box."""
    text = without_hidden(text)
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"


MAX_DATASETS: Final = 60  # guess: more boxes are no drawing that anybody reads
MAX_LOOKED_AT: Final = 2_000  # guess: datasets that are asked whether they read this one
MAX_QUERIES: Final = 10  # guess


def show_lineage(visit: PageRequest) -> Page:
    """Draw the lineage of a dataset, list it, and show the query in force and those before."""
    record, chains = visit.get_dataset(), visit.node.store
    above = read_lineage(chains, record, find=visit.find_dataset, most=MAX_DATASETS)
    others = (each for each in visit.list_datasets() if each.id not in {known.dataset_id for known in above})
    readers = list_readers(chains, islice(others, MAX_LOOKED_AT), record.id, find=visit.find_dataset)
    lineage = [*above, *readers][:MAX_DATASETS]
    is_derived = load_view(chains, record.id).transform is not None
    queries = [*reversed(list_queries(chains, record.id, most=MAX_QUERIES))] if is_derived else []
    values = {
        "drawing": draw(lineage, record.id),
        "box": (WIDTH, HEIGHT),
        "above": above,
        "below": readers[:MAX_DATASETS],
        "names": {each.dataset_id: each.name for each in lineage},
        "queries": [(span, _inputs_of(visit, span)) for span in queries],
    }
    return Page("lineage.html", {**frame_of(visit, record, "lineage"), **values})


def _inputs_of(visit: PageRequest, span: QuerySpan) -> list[tuple[str, DatasetId, str, str]]:
    """Give alias, identity, name and rows of what a query reads; an input that is not for the viewer has no name."""
    found = []
    for item, (dataset_id, rows) in zip(span.declared.inputs, span.read, strict=True):
        record = visit.find_dataset(dataset_id)
        name = "" if record is None else record.name
        found.append((item.alias or "", dataset_id, name, "no rows" if rows is None else str(rows)))
    return found
