"""One object from several peers at once, each range checked as it arrives (EX-41).

Peers that give the same list of leaves are a group; the largest group is asked first. A range that does not fit the
list puts the peer that sent it aside: it contradicts itself. A peer that stalls or fails is put aside for this object.
When all ranges are there, the whole is compared with the block's hash; if that fails, the list was wrong, and the whole
group is put aside.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from pathlib import Path

from yarl import URL

from odf_node.adapters.http_client import HttpClient, read_bounded
from odf_node.adapters.http_failures import error_of_status
from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.peer_errors import PeerLiedError, PeerUnavailableError
from odf_node.records.errors import ObjectMismatchError
from odf_node.threads import finish_in_thread
from odf_protocol.errors import OdfError, RejectedError, UnsupportedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.object_parts import LEAF_BYTES, MAX_LEAVES, HashTree, count_leaves, find_content_range


@dataclass(slots=True)
class Source:
    """A peer that may have the object.

    ``lie`` is set for good once it contradicted itself; ``sent`` counts the ranges of it that were used.
    """

    client: HttpClient
    object_url: URL
    tree_url: URL
    lie: PeerLiedError | None = None
    sent: int = 0
    failures: list[OdfError] = field(default_factory=list)


async def fetch_from_several(
    sources: Sequence[Source],
    item: WantedObject,
    objects: ArrivingObjects,
    scratch: Path,
    on_bytes: OnBytes | None = None,
) -> None:
    """Bring one object into the store; the caller holds a writing lease.

    Args:
        sources: Peers; those that have lied are not asked.
        item: What is wanted.
        objects: Where it goes.
        scratch: A folder on the store's disk, for the ranges until all are there.
        on_bytes: Told how many bytes arrived and were checked.

    Raises:
        PeerLiedError: Every peer that answered lied; the last lie.
        PeerUnavailableError: No peer that is honest so far has all of it.
        UnsupportedError: The object is larger than a list of leaves can be.
    """
    if count_leaves(item.size_bytes) > MAX_LEAVES:
        raise UnsupportedError("object of several peers", found=f"{item.size_bytes} bytes", supported="a terabyte")
    trees = await asyncio.gather(*(_find_tree(source, item) for source in sources if source.lie is None))
    groups: dict[bytes, tuple[HashTree, list[Source]]] = {}
    for source, tree in (pair for pair in trees if pair is not None):
        groups.setdefault(tree.raw, (tree, []))[1].append(source)
    for tree, group in sorted(groups.values(), key=lambda entry: -len(entry[1])):
        path = scratch / f"ranges-{item.hash}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if not await _fill(descriptor, tree, group, on_bytes):
                continue
            try:
                await finish_in_thread(lambda path=path: _keep(objects, path, item))  # type: ignore[misc]
            except ObjectMismatchError as error:
                for source in group:
                    source.lie = PeerLiedError(
                        str(source.tree_url), "EX-40 hash-tree", expected=item.hash, found=error.found
                    )
                if on_bytes is not None:
                    on_bytes(-item.size_bytes)
                continue
            return
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)
    lies = [source.lie for source in sources if source.lie is not None]
    failures = [failure for source in sources for failure in source.failures]
    if failures or not lies:
        where = str(sources[0].object_url) if sources else str(item.hash)
        raise PeerUnavailableError(where, f"none of {len(sources)} peers has all of it") from next(iter(failures), None)
    raise lies[-1]


async def _find_tree(source: Source, item: WantedObject) -> tuple[Source, HashTree] | None:
    limit_bytes = count_leaves(item.size_bytes) * 32
    try:
        raw = await source.client.get_bytes(source.tree_url, "hash tree", limit_bytes=limit_bytes)
        return source, HashTree(raw, item.size_bytes)
    except OdfError as error:
        source.failures.append(error)
        return None


async def _fill(descriptor: int, tree: HashTree, group: Sequence[Source], on_bytes: OnBytes | None) -> bool:
    """Fetch all leaves; False: those who are left have not all of them."""
    waiting = list(range(len(tree)))[::-1]
    under_way = 0
    woken = asyncio.Event()

    async def work(source: Source) -> None:
        nonlocal under_way
        while source.lie is None:
            if not waiting:
                if not under_way:
                    woken.set()
                    return
                # Somebody may fail, and leave the range to us.
                woken.clear()
                await woken.wait()
                continue
            leaf = waiting.pop()
            under_way += 1
            try:
                async with slots:
                    data = await _get_range(source, tree, leaf)
                await finish_in_thread(lambda leaf=leaf, data=data: os.pwrite(descriptor, data, leaf * LEAF_BYTES))  # type: ignore[misc]
            except RejectedError as error:
                waiting.append(leaf)
                if isinstance(error, PeerLiedError):
                    source.lie = error
                source.failures.append(error)
                return
            except OdfError as error:
                waiting.append(leaf)
                source.failures.append(error)
                return
            except TimeoutError:
                waiting.append(leaf)
                source.failures.append(PeerUnavailableError(str(source.object_url), "it stopped answering"))
                return
            finally:
                under_way -= 1
                woken.set()
            source.sent += 1
            if on_bytes is not None:
                on_bytes(len(data))

    # Two requests of each peer at once: one is on the way while the other is checked.
    parallel = group[0].client.settings.parallel
    slots = asyncio.Semaphore(parallel or 2 * len(group))
    async with asyncio.TaskGroup() as tasks:
        for source in group:
            for _ in range(2):
                tasks.create_task(work(source))
    return not waiting


async def _get_range(source: Source, tree: HashTree, leaf: int) -> bytes:
    start, end = tree.range_of(leaf)
    await source.client.settings.rate.pay(end - start, max_s=inf)
    headers = {"Range": f"bytes={start}-{end - 1}"}
    async with (
        asyncio.timeout(source.client.settings.message_s),
        source.client.open("GET", source.object_url, headers=headers) as answer,
    ):
        if answer.status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
            raise error_of_status(str(source.object_url), answer.status, "object")
        part = find_content_range(answer.headers.get("Content-Range"))
        whole = answer.status == HTTPStatus.OK and len(tree) == 1
        if not whole and (part is None or (part.start, part.end) != (start, end)):
            found = answer.headers.get("Content-Range")
            raise PeerLiedError(str(source.object_url), "EX-6 range", expected=f"bytes {start}-{end - 1}", found=found)
        data = await read_bounded(answer, end - start)
    if not await asyncio.to_thread(tree.matches, leaf, data):
        raise PeerLiedError(
            str(source.object_url),
            "EX-40 range",
            expected=f"bytes {start}-{end - 1} of its own hash tree",
            found="others",
        )
    return data


def _keep(objects: ArrivingObjects, path: Path, item: WantedObject) -> None:
    with objects.stage_copy(path) as staged:
        objects.put(staged, item.hash)
