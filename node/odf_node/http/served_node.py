"""What the routes work on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web

from odf_node.configuration import Configuration
from odf_node.metrics import Metrics
from odf_node.ports.clock import Clock
from odf_node.ports.objects import ObjectStore
from odf_node.ports.pushes import PushReceiver
from odf_node.ports.row_intake import RowIntake
from odf_node.ports.serving import DatasetSearch, DisputeRegistry, KeyLogRegistry, RebuildRequests, SliceTrees
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_node.store import MetadataStore
from odf_protocol.did import DidKey
from odf_protocol.exchange.limits import MAX_VERIFICATIONS, MAX_WAITING_VERIFICATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedNode:
    """One node as the routes see it.

    Attributes:
        software: Name and version for peers, as ``odf-node/0.1.0``.
        node_id: The node's identity, None while it has no key.
        store: What the home keeps.
        search: Finds datasets by words.
        objects: Slices and checkpoints.
        clock: Judges tokens.
        trees: Hash trees of slices.
        disputes: What is proved against datasets.
        key_logs: Who speaks for datasets.
        pushes: Judges pushes; None: this node takes none.
        rows: Takes in rows that are sent; None: nobody does.
        spool_folder: Where blocks that are being pushed wait; None: the system's folder for temporary files.
        rebuilds: Brings back files of derivatives of our own that were dropped; None: nobody does.
        verifications: Turns of those whose data are verified here.
    """

    software: str
    node_id: DidKey | None
    store: MetadataStore
    search: DatasetSearch
    objects: ObjectStore
    clock: Clock
    disputes: DisputeRegistry
    key_logs: KeyLogRegistry
    trees: SliceTrees
    pushes: PushReceiver | None = None
    rows: RowIntake | None = None
    spool_folder: Path | None = None
    rebuilds: RebuildRequests | None = None
    verifications: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(lambda: TurnLimits(MAX_VERIFICATIONS, MAX_WAITING_VERIFICATIONS))
    )


NODE: Final = web.AppKey("node", ServedNode)


class Live:
    """The configuration that holds now, and the node's figures; used on the event loop."""

    def __init__(self, configuration: Configuration | None = None, metrics: Metrics | None = None) -> None:
        self.configuration = configuration or Configuration()
        self.metrics = metrics or Metrics()
        self.damaged_objects = 0
        """As the last scrub found."""


LIVE: Final = web.AppKey("live", Live)
