"""From what a user typed to the datasets that are meant, and another name for one of them."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.records.access import ReadGrants
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.accept_policies import PolicySet
from odf_protocol.did import DatasetId
from odf_protocol.names import DatasetName, fits_pattern

_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}(/.*)?")


def get_dataset(store: MetadataStore, text: str) -> DatasetRecord:
    """Find the one dataset that ``text`` names: a local name (case does not matter) or a ``did:odf``.

    Raises:
        UnknownDatasetError: There is none; the message offers the nearest name.
    """
    if text.startswith("did:"):
        record = store.find_dataset(DatasetId.parse(text))
        if record is None:
            raise UnknownDatasetError(f"this node has no dataset {text}; 'odf-node list --wide' shows the identities")
        return record
    records = store.list_datasets()
    for record in records:
        if record.name.lower() == text.lower():
            return record
    address = find_missing_scheme(text)
    if address is not None:
        raise UnknownDatasetError(f"this node has no dataset '{text}'; an address is written {address}")
    near = difflib.get_close_matches(text, [record.name for record in records], n=1)
    hint = f"did you mean '{near[0]}'?" if near else "'odf-node list' shows what there is"
    raise UnknownDatasetError(f"this node has no dataset '{text}'; {hint}")


def find_missing_scheme(text: str) -> str | None:
    """Give the address that somebody meant who left out how to get there (``host:8080/name``), else None."""
    return f"http://{text}" if _HOST_AND_PORT.fullmatch(text) else None


def list_named(store: MetadataStore, reads: ReadGrants) -> tuple[DatasetRecord, ...]:
    """List the datasets that somebody may read, each name once: as ``find_readable`` has it (EX-85)."""
    records = store.list_readable(reads)
    names = [record.name.lower() for record in records]
    if len(set(names)) == len(names):
        return records
    meant = {name: store.find_readable(DatasetName.parse(name), reads) for name in names}
    return tuple(each for each in records if (found := meant[each.name.lower()]) is not None and found.id == each.id)


def select_datasets(store: MetadataStore, patterns: Sequence[str]) -> list[DatasetRecord]:
    """Find the datasets that names or ``%`` patterns mean, each once, in the order given.

    Raises:
        UnknownDatasetError: A name or pattern means none.
    """
    chosen: dict[DatasetId, DatasetRecord] = {}
    for pattern in patterns:
        if "%" not in pattern:
            record = get_dataset(store, pattern)
            chosen[record.id] = record
            continue
        matching = [record for record in store.list_datasets() if fits_pattern(pattern, record.name)]
        if not matching:
            raise UnknownDatasetError(f"no dataset of this node matches '{pattern}'")
        chosen.update((record.id, record) for record in matching)
    return list(chosen.values())


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

    store: MetadataStore
    policies: PolicySet

    def rename(self, record: DatasetRecord, name: str) -> Renamed:
        """Give a dataset another name; everything that knows it by its identity goes along.

        Raises:
            MalformedError: It is no name.
            NameTakenError: Another dataset has it.
            NameMovedError: Another process renamed the dataset just now.
            UsageError: It is its name already.
        """
        wanted = str(DatasetName.parse(name))
        if wanted == record.name:
            raise UsageError(f"'{wanted}' is its name already")
        self.store.rename_dataset(record.id, record.name, wanted)
        return Renamed(record, wanted, self._find_rule(record, record.name), self._find_rule(record, wanted))

    def _find_rule(self, record: DatasetRecord, name: str) -> str | None:
        if record.origin is Origin.OWN:
            return None
        return self.policies.find_rule(name, record.id, record.origin_url or "").name
