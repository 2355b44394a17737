"""Work of the use cases that takes an event loop or time, for callers that may have a loop of their own.

Source: clauses PYTHON-3 and PYTHON-6 in ``spec/python.md``.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from odf_node.composition import Node
from odf_node.ports import DatasetRecord
from odf_node.ports.progress import Silence
from odf_protocol.multihash import Multihash

_Result = TypeVar("_Result")


def finish(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Wait for work, in a thread of its own: a notebook's has a loop that runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def bring_files(node: Node, needed: Iterable[tuple[DatasetRecord, Collection[Multihash]]]) -> None:
    """Bring and check files that are read next and are not here by choice, or whose rows nobody checked (PART-9).

    Raises:
        ObjectsAbsentError: They can be had nowhere now.
        RejectedError: What came is not what its blocks say.
    """
    for record, hashes in needed:
        finish(node.bringing.bring(record, hashes, Silence()))
