"""Datasets that look into each other before any of them has rows (CONV-8), however many stand in a line."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from odf_node.home_folder import HomeFolder
from odf_node.ingest.looked_into import LookedInto
from odf_protocol.events import AttachmentEmbedded, AttachmentsEmbedded, DatasetKind, SetAttachments
from odf_protocol.manifest import DatasetSnapshot
from support.open_stores import open_store

LINE = sys.getrecursionlimit() + 200
LOOKUP = "- {{kind: Lookup, dataset: {name}, on: {{code: code}}, take: {{n: n}}, missing: Keep}}\n"


def looking(name: str, *into: str) -> DatasetSnapshot:
    """Make a new dataset whose ingests look into others."""
    text = "converters:\n" + "".join(LOOKUP.format(name=each) for each in into)
    items = (AttachmentEmbedded(path="odf-node/ingest.yaml", content=text),)
    metadata = (SetAttachments(attachments=AttachmentsEmbedded(items=items)),) if into else ()
    return DatasetSnapshot(name=name, kind=DatasetKind.ROOT, metadata=metadata)


@pytest.mark.parametrize("is_closed", [True, False], ids=["circle", "line"])
def test_line_of_new_datasets_is_followed_to_its_end_conv_8(is_closed: bool, tmp_path: Path) -> None:
    """CONV-8: whoever looked at one of them called itself, and a long line ended ``add`` with a traceback."""
    names = [f"d{number}" for number in range(LINE)]
    last = looking(names[-1], "d0") if is_closed else looking(names[-1])
    line = (*(looking(one, other) for one, other in pairwise(names)), last)

    found = LookedInto(open_store(HomeFolder(tmp_path)), line).find_circle("d1", "d0")

    assert found == ((*names, "d0") if is_closed else ())


def test_circle_is_found_behind_ends_and_circles_of_others_conv_8(tmp_path: Path) -> None:
    """The names on it are told in order; what is beside it is not on it."""
    ring = (looking("a", "B"), looking("b", "c", "x", "d"), looking("c"), looking("x", "y"), looking("y", "x"))
    beside = (looking("d", "b", "A"),)
    store = open_store(HomeFolder(tmp_path))
    assert LookedInto(store, (*ring, *beside)).find_circle("b", "a") == ("a", "b", "d", "a")
    assert LookedInto(store, ring).find_circle("b", "a") == ()
    assert LookedInto(store, ring).find_circle("nobody", "a") == ()
    assert LookedInto(store, (looking("a", "a"),)).find_circle("A", "a") == ("a", "a")
