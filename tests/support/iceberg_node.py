"""A node whose datasets are read as Iceberg tables by a real reader, which runs in a thread beside it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from odf_node.adapters.clocks import SystemClock
from support.offers import NOON, Judge, PeerChain, PublisherHome, root_chain
from support.secretive_node import SecretiveNode

KEY = b"\x71" * 32
APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)

Result = TypeVar("Result")


def create_node(folder: Path) -> SecretiveNode:
    """Make the node with a clock that goes: readers sign with theirs."""
    made = SecretiveNode.create(folder)
    made.node.clock = SystemClock()
    return made


def open_table(url: str, name: str, **settings: str) -> Table:
    """Load a table by the one line that the guide shows."""
    catalog = load_catalog("node", type="rest", uri=f"{url}/_iceberg", **settings)
    return catalog.load_table(("odf", name))


async def read_table(url: str, name: str, snapshot: int | None = None, **settings: str) -> list[dict[str, Any]]:
    """Read all rows of a table, in any order, as of a snapshot."""

    def read() -> list[dict[str, Any]]:
        return list(open_table(url, name, **settings).scan(snapshot_id=snapshot).to_arrow().to_pylist())

    return await asyncio.to_thread(read)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run what asks this process' own server, and would hold up its loop."""
    return await asyncio.to_thread(work)


def keep(made: SecretiveNode, chain: PeerChain) -> PeerChain:
    PublisherHome(Judge(made.node.home.folder, made.node.engines)).keep(chain)
    return chain


def corrected_chain(made: SecretiveNode) -> PeerChain:
    """Rome is corrected, Vaduz retracted, Oslo given twice and retracted once."""
    chain = root_chain(made.hidden.folder, slices=1, key=KEY, name="shop.cities")
    at = NOON.unix_ms
    times = [at + 1, at + 1, at + 2, at]
    chain.add_rows(
        [("Rome", 2_800_000), ("Rome", 3), ("Vaduz", 5_600), ("Oslo", 717_710)],
        op=[CORRECT_FROM, CORRECT_TO, RETRACT, APPEND],
        event_time=times,
    )
    chain.add_rows([("Oslo", 717_710)], op=[RETRACT], event_time=[at])
    return keep(made, chain)
