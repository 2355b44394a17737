"""Creating datasets from snapshots."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from odf_node.datasets.redefinition import Redefiner, Redefinition
from odf_node.datasets.writer import ChainWriter, find_writing_time
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.home import Home
from odf_node.ports.clock import Clock
from odf_node.records.commits import NewDataset
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.block import LATEST_VERSION
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import DatasetKind, Seed, SetTransform, TransformInput
from odf_protocol.manifest import DatasetSnapshot
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Added:
    """What manifests made of a node.

    Attributes:
        created: Datasets that are new.
        changed: Each dataset that was there, before and after; the same twice where the manifest said nothing new.
    """

    created: tuple[DatasetRecord, ...]
    changed: tuple[tuple[DatasetRecord, DatasetRecord], ...]


@dataclass(frozen=True, slots=True)
class DatasetCreator:
    """The use case behind ``odf-node add``."""

    home: Home

    def add_all(
        self,
        snapshots: Sequence[DatasetSnapshot],
        clock: Clock,
        *,
        replaces: bool = False,
        block_version: int = LATEST_VERSION,
    ) -> Added:
        """Create a dataset for each snapshot, or change the one that is there.

        All changes are planned before the first is written, so a rejected manifest leaves the others undone too.

        Args:
            snapshots: What shall be.
            clock: For the times of new blocks.
            replaces: Datasets that are there may be meant.
            block_version: Of blocks of new datasets.

        Raises:
            UsageError, UnknownDatasetError: As ``check_all``, or a dataset cannot be changed so.
        """
        self.check_all(snapshots, replaces=replaces)
        new: list[DatasetSnapshot] = []
        planned: list[Redefinition] = []
        for snapshot in snapshots:
            record = self.redefiner.find(snapshot) if replaces else None
            if record is None:
                new.append(snapshot)
                continue
            system_time = find_writing_time(self.home.store, clock, record.id)
            planned.append(self.redefiner.plan(record, snapshot.metadata, self.resolve_inputs, system_time=system_time))
        changed = tuple((each.record, self.redefiner.apply(each)) for each in planned)
        created = self.create_all(new, system_time=clock.now(), block_version=block_version)
        return Added(tuple(created), changed)

    def create_all(
        self, snapshots: Sequence[DatasetSnapshot], *, system_time: Timestamp, block_version: int = LATEST_VERSION
    ) -> list[DatasetRecord]:
        """Create one dataset per snapshot, inputs before the derivatives that name them.

        Everything that can be known to be wrong is found before the first dataset is made.

        Raises:
            UsageError, UnknownDatasetError: As ``check_all``.
        """
        self.check_all(snapshots)
        return [
            self.create(snapshot, system_time=system_time, block_version=block_version)
            for snapshot in _inputs_first(snapshots)
        ]

    def check_all(self, snapshots: Sequence[DatasetSnapshot], *, replaces: bool = False) -> None:
        """Check what can be known of names and inputs without running anything.

        Args:
            snapshots: What shall be made.
            replaces: Datasets that are there may be meant.

        Raises:
            UsageError: A name is taken or given twice, a dataset that is there is another's or of another kind, or
                derivatives read each other in a circle.
            UnknownDatasetError: A derivative's input is neither here nor among the snapshots.
        """
        names = [snapshot.name.lower() for snapshot in snapshots]
        taken = set() if replaces else {record.name.lower() for record in self.home.store.list_datasets()}
        for name, times in Counter(names).items():
            if times > 1:
                raise UsageError(f"'{name}' is defined twice in these manifests; each dataset needs a name of its own")
            if name in taken:
                raise UsageError(
                    f"there is a dataset '{name}' already; 'odf-node add --replace FILE' changes what it is made by, "
                    "or choose another name"
                )
        for snapshot in snapshots:
            self._check_inputs(snapshot, names)
            if replaces:
                self.redefiner.find(snapshot)
        _inputs_first(snapshots)

    def create(
        self, snapshot: DatasetSnapshot, *, system_time: Timestamp, block_version: int = LATEST_VERSION
    ) -> DatasetRecord:
        """Create one dataset: a new key, its Seed, one block per event, all with one system time.

        Args:
            snapshot: What the dataset shall be.
            system_time: Of all its first blocks.
            block_version: Of its blocks, these and later ones; older nodes read version 2 only.
        """
        key = self.home.keys.generate()
        dataset_id = DatasetId(key.public_key())
        writer = ChainWriter.start_chain(self.home.store, dataset_id, key, block_version=block_version)
        writer.add(Seed(dataset_id=dataset_id, dataset_kind=snapshot.kind), system_time=system_time)
        for event in snapshot.metadata:
            resolved = self.resolve_inputs(event) if isinstance(event, SetTransform) else event
            writer.add(resolved, system_time=system_time)
        self.home.keys.put_dataset_key(key)
        return writer.commit(
            signed_at=system_time,
            objects=self.home.objects,
            staged={},
            new_dataset=NewDataset(
                name=str(snapshot.name), kind=snapshot.kind, origin=Origin.OWN, created_at=system_time
            ),
        )

    def _check_inputs(self, snapshot: DatasetSnapshot, names: Sequence[str]) -> None:
        for event in snapshot.metadata:
            if not isinstance(event, SetTransform):
                continue
            for item in event.inputs:
                if item.dataset_ref.lower() not in names and self._find(item.dataset_ref) is None:
                    raise UnknownDatasetError(
                        f"'{snapshot.name}' reads '{item.dataset_ref}', which is not in this node; "
                        f"add or pull it first, or put its manifest beside this one"
                    )

    @property
    def redefiner(self) -> Redefiner:
        """Behind ``add --replace``."""
        return Redefiner(self.home)

    def resolve_inputs(self, event: SetTransform) -> SetTransform:
        """Write identities where the author wrote names; a missing alias becomes the name as written (ODF)."""
        inputs = []
        for item in event.inputs:
            record = self._find(item.dataset_ref)
            if record is None:
                raise UnknownDatasetError(f"input '{item.dataset_ref}' is not in this node")
            inputs.append(TransformInput(dataset_ref=str(record.id), alias=item.alias or item.dataset_ref))
        return replace(event, inputs=tuple(inputs))

    def _find(self, reference: str) -> DatasetRecord | None:
        try:
            return self.home.store.find_dataset(DatasetId.parse(reference))
        except MalformedError:
            wanted = reference.lower()
            return next((record for record in self.home.store.list_datasets() if record.name.lower() == wanted), None)


def _inputs_first(snapshots: Sequence[DatasetSnapshot]) -> list[DatasetSnapshot]:
    """Order snapshots so that what a derivative reads is made before it.

    Raises:
        UsageError: Derivatives read each other in a circle.
    """
    waiting = {str(snapshot.name).lower(): snapshot for snapshot in snapshots}
    ordered: list[DatasetSnapshot] = []
    while waiting:
        ready = [name for name, snapshot in waiting.items() if not _reads(snapshot) & (waiting.keys() - {name})]
        ready = [name for name in ready if name not in _reads(waiting[name])]
        if not ready:
            raise UsageError(f"these derivatives read each other in a circle: {', '.join(sorted(waiting))}")
        ordered.extend(waiting.pop(name) for name in ready)
    return ordered


def _reads(snapshot: DatasetSnapshot) -> set[str]:
    if snapshot.kind is not DatasetKind.DERIVATIVE:
        return set()
    return {
        item.dataset_ref.lower()
        for event in snapshot.metadata
        if isinstance(event, SetTransform)
        for item in event.inputs
    }
