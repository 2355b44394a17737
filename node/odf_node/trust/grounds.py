"""What the data of one dataset rest on: every acceptance with its grounds, who attests what, what to worry about."""

from dataclasses import dataclass

from odf_node.acceptance.attesting import describe_attestation
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.datasets.chains import find_partial
from odf_node.datasets.presence import Presence
from odf_node.derive.grading import describe_reach
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.keys.reports import KeyReports
from odf_node.ports.engines import EngineFiles
from odf_node.records.commits import Acceptance
from odf_node.records.datasets import DatasetRecord
from odf_node.records.evidence import HeldAttestation


@dataclass(frozen=True, slots=True)
class TrustGrounds:
    """What one dataset rests on.

    Attributes:
        record: Which.
        reach: How far its query reaches, where that has to be said.
        partial: What makes it less than its declared query over the whole input; empty where nothing does.
        absent_files: How many of its files are not here by choice.
        not_checked: What was taken without a look at it.
        key_warnings: What is doubtful about who speaks for it; first of all that they contradicted themselves.
        acceptances: Oldest first.
        statements: Attestations in order of arrival, each with what it says in words.
    """

    record: DatasetRecord
    reach: str | None
    partial: str
    absent_files: int
    not_checked: tuple[str, ...]
    key_warnings: tuple[str, ...]
    acceptances: tuple[Acceptance, ...]
    statements: tuple[tuple[HeldAttestation, str], ...]

    @property
    def ground(self) -> str:
        """What it rests on, in words."""
        return self.record.trust.in_words(self.partial)


@dataclass(frozen=True, slots=True)
class GroundsReader:
    """The use case behind ``odf-node inspect trust``."""

    home: Home
    engine_files: EngineFiles

    def read(self, record: DatasetRecord) -> TrustGrounds:
        """Collect what is known."""
        unchecked = find_unchecked(self.home.store, record)
        obstacle = Disputes(self.home.store).find_obstacle(record.id, name=record.name)
        doubts = KeyReports(self.home.store).list_doubts(record)
        return TrustGrounds(
            record,
            describe_reach(record, self.home.store, self.engine_files),
            find_partial(self.home.store, record),
            len(Presence(self.home.store, self.home.objects).find_absent(record)),
            unchecked.what if unchecked else (),
            (*((obstacle,) if obstacle else ()), *doubts),
            tuple(self.home.store.iter_acceptances(record.id)),
            tuple((each, describe_attestation(each.raw)) for each in self.home.store.iter_attestations(record.id)),
        )
