"""Where the format ``odf`` finds a dataset: in a home, or at an address, of which it is brought once for a session.

Spark makes a reader or writer in one process and uses it in others; what travels between them are these values.

Source: clauses SPARKTABLE-7 and SPARKTABLE-12 in ``spec/plug-ins/spark-tables.md``.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.acceptance.offers import Subset
from odf_node.composition import Node, open_node
from odf_node.datasets.chains import iter_slices
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_node.home_folder import HomeFolder
from odf_node.ports.access import AccessLog, Requester, calling
from odf_node.ports.progress import Silence
from odf_node.records.datasets import DatasetRecord
from odf_node.remote_tables import MAX_BYTES
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp
from odf_spark_tables.folders import alone
from odf_spark_tables.versions import PublishedTable, Versions

_SCHEMES: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class OpenedDataset:
    """A dataset with the node that has it, the folder for its files in the session, and what hears of its reads."""

    node: Node
    record: DatasetRecord
    folder: Path
    access: AccessLog


@dataclass(frozen=True, slots=True)
class TableLocation:
    """A dataset in a session.

    Attributes:
        home: The folder of the node's home.
        folder: That of the session.
        dataset: A name of the home, or an address.
        as_of: Only what was known by then; None for everything.
        application: Spark's id of the application.
    """

    home: str
    folder: str
    dataset: str
    as_of: Timestamp | None = None
    application: str = ""

    @property
    def is_remote(self) -> bool:
        """Whether it is at an address."""
        return self.dataset.startswith(_SCHEMES)

    @contextmanager
    def opened(self) -> Iterator["OpenedDataset"]:
        """Open the node that has the dataset; of one at an address the blocks pass acceptance, once for a session.

        Raises:
            UnknownDatasetError: The home has no such dataset.
            UnavailableError, NotFoundError: It is not to be had at the address.
            RejectedError: What is there is not accepted.
        """
        node = open_node(Path(self.home))
        try:
            node.keep_to_settings()
            with calling(spark_requester(self.application)):
                if self.is_remote:
                    with self._opened_remote(node) as found:
                        yield found
                else:
                    record = get_dataset(node.store, self.dataset)
                    yield OpenedDataset(node, record, Path(self.folder), node.store.access)
        finally:
            node.close()

    def publish(self, what: str) -> PublishedTable:
        """Give files that Spark may read; ``what`` and errors as ``opened`` and ``Versions.publish``."""
        with self.opened() as found:
            if self.is_remote:
                sizes = (each.size for each in iter_slices(found.node.store, found.record.id, as_of=self.as_of))
                _require_small(self.dataset, sum(sizes))
            versions = Versions(found.node, found.folder, found.access)
            return versions.publish(found.record, as_of=self.as_of, what=what)

    @contextmanager
    def _opened_remote(self, node: Node) -> Iterator["OpenedDataset"]:
        place = Path(self.folder) / f"remote-{hashlib.sha3_256(self.dataset.encode()).hexdigest()[:16]}"
        with alone(place):
            home = HomeFolder(place / "home")
            home.create()
            node.read_policies()  # where they cannot be read, none are not those of the operator
            if node.home.folder.policies.exists():
                shutil.copyfile(node.home.folder.policies, home.policies)
            asked = Node(home, node.clock)
            try:
                asked.outgoing = node.outgoing  # as this node, which is known to some and has tokens for some
                found = asked.store.list_datasets()
                record = found[0] if found else _take(asked, self.dataset)
                if (held := node.store.find_dataset(record.id)) is not None:
                    # What is known here of its keys and history outranks what is shown to a newcomer (QUERY-12).
                    yield OpenedDataset(node, held, Path(self.folder), node.store.access)
                else:
                    yield OpenedDataset(asked, record, place, node.store.access)
            finally:
                asked.close()


def _take(node: Node, url: str) -> DatasetRecord:
    options = PullOptions(subset=Subset.METADATA_ONLY, command="spark")
    work = node.pulling.pull(PullTarget(url, None, url), options, Silence())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result().record


def _require_small(url: str, size_bytes: int) -> None:
    if size_bytes > MAX_BYTES:
        raise UsageError(
            f"{url} has {size_bytes:,} bytes of slices, more than the {MAX_BYTES:,} that a session brings; "
            f"'odf-node pull {url}' brings and keeps them"
        )


def spark_requester(application: str) -> Requester:
    """Say who reads and writes for an application of Spark (AUDIT-2)."""
    return Requester(door="spark", application=application)


def moment_of(text: str) -> Timestamp:
    """Read a time that a reader names.

    Raises:
        UsageError: It is none.
    """
    try:
        return Timestamp.parse_or_day(text)
    except MalformedError as error:
        raise UsageError(f"asOf {text!r} is not a time; write it as 2020-10-01T12:00:00Z") from error
