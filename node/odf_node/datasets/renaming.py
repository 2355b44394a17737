"""Another local name for a dataset; what it is, its identity, stays."""

from dataclasses import dataclass

from odf_node.ports import DatasetRecord, Origin
from odf_node.ports.datasets import DatasetStore
from odf_protocol.accept_policies import PolicySet
from odf_protocol.names import DatasetName


@dataclass(frozen=True, slots=True)
class Renamed:
    """A dataset that has another name now.

    Attributes:
        before: As it was.
        name: What it is called now.
        old_rule: Of the policies, that its old name and its identity matched; None for an own dataset.
        new_rule: That its new name matches.
    """

    before: DatasetRecord
    name: str
    old_rule: str | None
    new_rule: str | None


@dataclass(frozen=True, slots=True)
class Renaming:
    """The use case behind ``odf-node rename``."""

    datasets: DatasetStore
    policies: PolicySet

    def rename(self, record: DatasetRecord, name: str) -> Renamed:
        """Give a dataset another name; everything that knows it by its identity goes along.

        Raises:
            MalformedError: It is no name.
            NameTakenError: Another dataset has it.
        """
        wanted = str(DatasetName.parse(name))
        self.datasets.rename_dataset(record.id, wanted)
        return Renamed(record, wanted, self._find_rule(record, record.name), self._find_rule(record, wanted))

    def _find_rule(self, record: DatasetRecord, name: str) -> str | None:
        if record.origin is Origin.OWN:
            return None
        return self.policies.find_rule(name, record.id, record.origin_url or "").name
