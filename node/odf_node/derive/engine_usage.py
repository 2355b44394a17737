"""Which engine made what: engines that are here with the datasets that name them, and datasets whose engine is not.

Source: clause ADDED-10 in ``spec/plug-ins/foreign.md``.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Final

from odf_engines.engine import Engine
from odf_engines.errors import EngineFailureError
from odf_engines.registry import installed_engines, usable_engines
from odf_node.datasets.chains import load_view
from odf_node.engines.finding import is_installed
from odf_node.ports.engines import AnyShelved, DamagedEngine, EngineFiles
from odf_node.records.datasets import BlockRole, DatasetRecord
from odf_node.store import MetadataStore
from odf_node.wording import count_of
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.step_record_codec import decode_step_record

_STEP_ROLES: Final = tuple(role for role in BlockRole if role > BlockRole.DEFINITION)
_MAX_LOOKED_AT: Final = 1000  # guess: chains of others may have no record at all, and be long
_INSTALLED: Final = "installed"
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class EngineRow:
    """An engine that is here, where it is from, and how many datasets and steps of this node name it.

    Attributes:
        name: As transforms call it.
        version: For people; empty where it is not known.
        capabilities: What it can be asked for.
        digest: Over its files; of one that is damaged, as they were added; empty where it is not known.
        origin: Where it is from.
        is_default: Whether it computes steps whose record names none of the engines here (ADDED-18).
        datasets: How many name it.
        steps: That these have.
        damage: What is wrong with it, and what to do; empty: nothing.
    """

    name: str
    version: str
    capabilities: str
    digest: str
    origin: str
    is_default: bool
    datasets: int
    steps: int
    damage: str = ""

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        names = {"is_default": "isDefault", "capabilities": "offers"}
        return {names.get(name, name): value for name, value in asdict(self).items()}

    def to_text(self) -> dict[str, str]:
        """Give it as a row of a table."""
        shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in asdict(self).items()}
        return shown | {"is_default": "yes" if self.is_default else "", "damage": ""}


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """An engine that is not here, the digests that made the newest steps of the datasets that name it, and these."""

    engine: str
    digests: tuple[str, ...]
    datasets: tuple[str, ...]

    def describe(self) -> str:
        """Say it in a line."""
        wanted = f", digest {' or '.join(self.digests)}" if self.digests else ""
        count = count_of(len(self.datasets), "dataset")
        waits = "waits" if len(self.datasets) == 1 else "wait"
        return f"not here: '{self.engine}'{wanted}; {count} {waits} for it: {', '.join(self.datasets)}"

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, with the keys of an engine that is here."""
        nothing = {"version": None, "offers": None, "digest": None, "origin": None}
        return {"name": self.engine, **nothing, "wanted": self.digests, "waiting": self.datasets}


@dataclass(frozen=True, slots=True)
class EngineUsage:
    """The use case behind ``odf-node engine list``: reads what is known, changes nothing."""

    store: MetadataStore
    engine_files: EngineFiles

    def list_engines(self) -> list[EngineRow]:
        """List the engines that are here, by name, the default of a name first; damaged ones among them."""
        named = self._by_engine()
        rows = [self._row(each, _INSTALLED, named, is_default=True) for each in usable_engines().values()]
        for name in dict.fromkeys(each.name for each in self.engine_files.list()):
            is_default = not is_installed(name)
            for each in self.engine_files.find(name):
                rows.append(self._shelved_row(each, named, is_default=is_default))
                is_default = False
        return sorted(rows, key=lambda row: row.name.lower())

    def list_waiting(self) -> list[WaitingRow]:
        """List the engines that datasets here name and that are not here, by name."""
        here = {name.lower() for name in installed_engines()} | {each.name for each in self.engine_files.list()}
        rows = []
        for name, records in sorted(self._by_engine().items()):
            if name not in here:
                digests = dict.fromkeys(found for record in records if (found := self._find_digest(record)) is not None)
                rows.append(WaitingRow(name, tuple(digests), tuple(record.name for record in records)))
        return rows

    def _shelved_row(
        self, each: AnyShelved, named: Mapping[str, Sequence[DatasetRecord]], *, is_default: bool
    ) -> EngineRow:
        if isinstance(each, DamagedEngine):
            records = named.get(each.name, ())
            steps = sum(map(self._count_steps, records))
            return EngineRow(each.name, "", "", each.digest, _UNKNOWN, is_default, len(records), steps, each.describe())
        row = self._row(each.engine, each.form, named, is_default=is_default, digest=each.digest)
        try:
            each.engine.digest()
        except EngineFailureError as error:
            return replace(row, damage=error.message)
        return row

    def _row(
        self,
        engine: Engine,
        origin: str,
        named: Mapping[str, Sequence[DatasetRecord]],
        *,
        is_default: bool,
        digest: str = "",
    ) -> EngineRow:
        records = named.get(engine.name.lower(), ())
        return EngineRow(
            name=engine.name,
            version=engine.version,
            capabilities=", ".join(sorted(engine.capabilities)),
            digest=digest or str(engine.digest()),
            origin=origin,
            is_default=is_default,
            datasets=len(records),
            steps=sum(map(self._count_steps, records)),
        )

    def list_datasets_of(self, engine: str) -> list[str]:
        """List the datasets whose query in force names an engine."""
        return [record.name for record in self._by_engine().get(engine.lower(), ())]

    def _by_engine(self) -> dict[str, Sequence[DatasetRecord]]:
        found: defaultdict[str, list[DatasetRecord]] = defaultdict(list)
        for record, name in self._iter_named():
            found[name.lower()].append(record)
        return dict(found)

    def _iter_named(self) -> Iterator[tuple[DatasetRecord, str]]:
        for record in self.store.list_datasets():
            if record.kind is DatasetKind.DERIVATIVE:
                transform = load_view(self.store, record.id).transform
                if transform is not None:
                    yield record, transform.transform.engine

    def _count_steps(self, record: DatasetRecord) -> int:
        last = record.head.sequence_number
        return sum(self.store.count_blocks(record.id, role, first=0, last=last) for role in _STEP_ROLES)

    def _find_digest(self, record: DatasetRecord) -> str | None:
        """Return which engine made the newest step that says so."""
        for block in islice(self.store.iter_blocks_backwards(record.id), _MAX_LOOKED_AT):
            found = self.store.find_step_record(record.id, block.hash)
            if found is not None:
                try:
                    return str(decode_step_record(found.raw).record.engine.digest)
                except OdfError:
                    return None  # 'verify' says what is wrong with it
        return None
