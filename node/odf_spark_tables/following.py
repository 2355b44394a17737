"""What others write into the datasets of a session's tables, shown to it: a thread that looks at the newest blocks.

Source: clause SPARKTABLE-6 in ``spec/plug-ins/spark-tables.md``.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from odf_node.composition import open_node
from odf_node.ports.access import Requester, calling
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from odf_spark_tables.versions import Versions

INTERVAL_S: Final = 1.0  # guess: a consumer may be as late, and looking costs a millisecond


class VersionFollower:
    """Publishes new versions of datasets until it is closed. It asks Spark for nothing."""

    def __init__(self, home: Path, folder: Path, requester: Requester) -> None:
        self._home, self._folder, self._requester = home, folder, requester
        self._followed: frozenset[DatasetId] = frozenset()
        self._heads: dict[DatasetId, Multihash] = {}
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self.problems: dict[str, str] = {}
        """By name, why the newest version of a dataset is not shown."""

    def follow(self, heads: Mapping[DatasetId, Multihash]) -> None:
        """Follow these datasets from now on; their versions with these newest blocks were published."""
        self._heads.update(heads)
        self._followed = frozenset(heads)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="odf-spark-tables", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        node = open_node(self._home)
        try:
            node.keep_to_settings()
            with calling(self._requester):
                while not self._end.wait(INTERVAL_S):
                    self._look(node.store, Versions(node, self._folder, node.store.access))
        finally:
            node.close()

    def _look(self, store: MetadataStore, versions: Versions) -> None:
        try:
            records = [each for each in store.list_datasets() if each.id in self._followed]
        except OdfError:
            return  # the home is busy; it is looked at again
        for record in records:
            if self._heads.get(record.id) == record.head.hash:
                continue
            try:
                versions.publish(record)
            except OdfError as error:
                self.problems = {**self.problems, record.name: str(error)}
                continue
            self._heads[record.id] = record.head.hash
            self.problems = {name: why for name, why in self.problems.items() if name != record.name}
