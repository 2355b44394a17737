"""Offers as honest and dishonest peers make them: real blocks, keys and Parquet slices; and a node that judges them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.engine import EngineSession
from odf_engines.reading.slices import logical_hash_of
from odf_node.acceptance.acceptor import Acceptor
from odf_node.acceptance.offers import AcceptanceReport, Proposal
from odf_node.acceptance.refusals import Rejections
from odf_node.acceptance.rejecting import Rejecter
from odf_node.adapters.key_files import KeyFiles
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.commit_point import commit_with_objects
from odf_node.derive.step_measurements import TransformReport
from odf_node.derive.transforms import Transformer
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.errors import ProposalRejectedError
from odf_node.home_folder import HomeFolder
from odf_node.ports.block_stage import ProposedBlock
from odf_node.ports.keys import PrivateKey
from odf_node.records.commits import Commit, NewBlock, NewDataset
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_node.store.object_names import BY_PULLS, open_arrivals
from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.events import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    Event,
    ExecuteTransform,
    OffsetInterval,
    Seed,
    SetDataSchema,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odf_protocol.head import Head
from odf_protocol.heads import sign_head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.signatures import public_key_of, sign_block
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.homes import make_home
from support.signing import DATASET_KEY, NOON
from support.stores import find_named

NOW = Timestamp(NOON.seconds + 86_400)
CITY_SCHEMA = DataSchema(
    fields=(
        *system_fields(Vocabulary()),
        DataField(name="city", type=DataTypeOption(inner=DataTypeString())),
        DataField(name="people", type=DataTypeOption(inner=DataTypeInt64())),
    )
)
CITIES: tuple[tuple[str | None, int | None], ...] = (("Oslo", 717_710), ("Rome", 2_800_000), ("Vaduz", 5_600))
MORE_CITIES: tuple[tuple[str | None, int | None], ...] = (("Turin", 841_600), (None, 1), ("", 2))


def slice_table(
    rows: Sequence[tuple[str | None, int | None]], *, first_offset: int, at: Timestamp, **columns: Any
) -> pa.Table:
    """Rows as a slice of ``CITY_SCHEMA``; ``columns`` replaces the values of some."""
    values: dict[str, Any] = {
        "offset": range(first_offset, first_offset + len(rows)),
        "op": [0] * len(rows),
        "system_time": [at.unix_ms] * len(rows),
        "event_time": [NOON.unix_ms + n for n in range(len(rows))],
        "city": [city for city, _ in rows],
        "people": [people for _, people in rows],
    }
    values |= columns
    schema = arrow_schema_of(CITY_SCHEMA)
    return pa.table(
        [pa.array(list(values[f.name]), pa.int64()).cast(f.type) if pa.types.is_timestamp(f.type)
         else pa.array(list(values[f.name]), f.type) for f in schema],
        schema=schema,
    )  # fmt: skip


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """Write a table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def hash_of_rows(content: bytes, folder: Path) -> Multihash:
    """Compute the logical hash of a slice, as whoever forges it would."""
    path = folder / "hashed.parquet"
    path.write_bytes(content)
    return logical_hash_of(path)


@dataclass
class PeerChain:
    """A chain in the hands of a peer: every part of it can be replaced, and everything after it made to fit again."""

    folder: Path
    """For files on the way."""
    key: bytes = DATASET_KEY
    name: str = "cities"
    blocks: list[Block] = field(default_factory=list)
    signatures: list[bytes | None] = field(default_factory=list)
    step_records: list[bytes | None] = field(default_factory=list)
    files: dict[Multihash, bytes] = field(default_factory=dict)
    identity: DatasetId | None = None

    @property
    def id(self) -> DatasetId:
        return self.identity or DatasetId(public_key_of(self.key))

    @property
    def head(self) -> Head:
        return Head(self.blocks[-1].sequence_number, self.blocks[-1].hash)

    def copy(self, **changes: Any) -> "PeerChain":
        """A copy that can be changed without changing this one."""
        fields: dict[str, Any] = {
            "blocks": list(self.blocks),
            "signatures": list(self.signatures),
            "step_records": list(self.step_records),
            "files": dict(self.files),
        }
        return replace(self, **(fields | changes))

    def up_to(self, number: int) -> "PeerChain":
        """The chain as it was when block ``number`` was its head."""
        count = number + 1
        return self.copy(
            blocks=self.blocks[:count],
            signatures=self.signatures[:count],
            step_records=self.step_records[:count],
        )

    def write_layout(self, folder: Path) -> None:
        """Write it as ODF's repository layout, without what is ours."""
        for name in ("blocks", "data", "refs", "checkpoints"):
            (folder / name).mkdir(parents=True)
        for block in self.blocks:
            (folder / "blocks" / str(block.hash)).write_bytes(block.raw)
        for object_hash, content in self.files.items():
            (folder / "data" / str(object_hash)).write_bytes(content)
        (folder / "refs" / "head").write_text(str(self.head.hash))

    def add(self, event: Event, *, at: Timestamp | None = None, step_record: bytes | None = None) -> "PeerChain":
        """Add a signed block."""
        raw = encode_block(
            event,
            system_time=at or Timestamp(NOON.seconds + len(self.blocks)),
            prev_block_hash=self.blocks[-1].hash if self.blocks else None,
            sequence_number=len(self.blocks),
        )
        block = decode_block(raw, expected_hash=None)
        self.blocks.append(block)
        self.signatures.append(sign_block(self.key, self.id, block.sequence_number, block.hash))
        self.step_records.append(step_record)
        return self

    def next_offset(self) -> int:
        intervals = [b.event.new_data.offset_interval for b in self.blocks
                     if isinstance(b.event, AddData | ExecuteTransform) and b.event.new_data]  # fmt: skip
        return intervals[-1].end + 1 if intervals else 0

    def add_rows(self, rows: Sequence[tuple[str | None, int | None]], **columns: Any) -> "PeerChain":
        """Add a block with a slice of these rows."""
        first = self.next_offset()
        at = Timestamp(NOON.seconds + len(self.blocks))
        table = slice_table(rows, first_offset=first, at=at, **columns)
        return self.add_slice(parquet_bytes(table), rows=len(rows))

    def add_slice(self, content: bytes, *, rows: int, **claims: Any) -> "PeerChain":
        """Add a block with any file as its slice, described as it is, or as ``claims`` say."""
        first = self.next_offset()
        fields: dict[str, Any] = {"physical_hash": Multihash.of_sha3_256(content), "size": len(content)}
        fields["offset_interval"] = OffsetInterval(start=first, end=first + rows - 1)
        fields |= claims
        if "logical_hash" not in fields:
            fields["logical_hash"] = hash_of_rows(content, self.folder)
        self.files[fields["physical_hash"]] = content
        return self.add(AddData(prev_offset=first - 1 if first else None, new_data=DataSlice(**fields)))

    def replacing(self, number: int, change: Callable[[Any], Any], *, key: bytes | None = None) -> "PeerChain":
        """Change the event of one block; it and those after it are linked and signed anew (with ``key``)."""
        changed = self.copy(
            blocks=self.blocks[:number],
            signatures=self.signatures[:number],
            step_records=self.step_records[:number],
            key=key or self.key,
            identity=self.id,
        )
        for block, record in zip(self.blocks[number:], self.step_records[number:], strict=True):
            event = change(block.event) if block.sequence_number == number else block.event
            changed.add(event, at=block.system_time, step_record=record)
        return changed

    def replacing_slice(self, number: int, table: pa.Table, *, key: bytes | None = None) -> "PeerChain":
        """Forge a slice with everything that has to fit: hashes, sizes, links, signatures."""
        content = parquet_bytes(table)
        physical = Multihash.of_sha3_256(content)
        logical = hash_of_rows(content, self.folder)

        def change(event: Any) -> Any:
            data = replace(event.new_data, physical_hash=physical, logical_hash=logical, size=len(content))
            return replace(event, new_data=data)

        changed = self.replacing(number, change, key=key)
        changed.files[physical] = content
        return changed

    def signed_head(self, **changes: Any) -> bytes:
        """Sign the head; ``changes`` for other things than are true."""
        key = changes.pop("key", self.key)
        fields = {"dataset_id": self.id, "sequence_number": self.head.sequence_number, "block_hash": self.head.hash}
        return sign_head(key, time=self.blocks[-1].system_time, **(fields | changes))

    def proposal(self, base: Head | None = None, **changes: Any) -> Proposal:
        """Offer everything, or what follows ``base``."""
        first = 0 if base is None else base.sequence_number + 1
        fields: dict[str, Any] = {
            "name": self.name,
            "source_url": "http://peer.example/cities",
            "base": base,
            "blocks": [
                ProposedBlock(b.raw, s, r)
                for b, s, r in zip(self.blocks, self.signatures, self.step_records, strict=True)
            ][first:],
        }
        if "signed_head" not in changes:
            changes["signed_head"] = self.signed_head()
        return Proposal(**(fields | changes))

    def state(self) -> ChainState:
        """Fold the chain rules."""
        state: ChainState | None = None
        for block in self.blocks:
            state, _ = append(state, block, strictness=Strictness.FOREIGN)
        assert state is not None
        return state


def root_chain(folder: Path, *, slices: int = 2, **fields: Any) -> PeerChain:
    """An honest root: Seed, schema, and up to two slices."""
    chain = PeerChain(folder, **fields)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=CITY_SCHEMA))
    for rows in (CITIES, MORE_CITIES)[:slices]:
        chain.add_rows(rows)
    return chain


def select(query: str, *inputs: DatasetId, engine: str = "spark") -> SetTransform:
    """Declare a query over inputs that it calls in0, in1, ..."""
    return SetTransform(
        inputs=tuple(TransformInput(dataset_ref=str(each), alias=f"in{n}") for n, each in enumerate(inputs)),
        transform=TransformSql(engine=engine, queries=(SqlQueryStep(query=query),)),
    )


class SharedEngine(EngineHost):
    """Every session is the one that the test run keeps warm; requests do not see each other there."""

    def __init__(self, workspace: Path, home: HomeFolder, session: EngineSession | None = None) -> None:
        super().__init__(EngineWorkspace(workspace), RowsFolder(home))
        self._folder = workspace
        self._shared = session

    @property
    def workspace(self) -> Path:
        self._folder.mkdir(exist_ok=True)
        return self._folder

    def own_session(self, name: str) -> EngineSession:
        self.get_engine(name)
        assert self._shared is not None, "this test was to need no engine"
        return self._shared

    @contextmanager
    def foreign_session(self, name: str):  # type: ignore[no-untyped-def]
        yield self.own_session(name)


@dataclass
class Judge:
    """A node that is offered things. The database is closed between calls, so that its file is all there is."""

    home: HomeFolder
    engines: EngineHost

    @classmethod
    def create(cls, folder: Path, session: EngineSession | None = None) -> "Judge":
        judge = cls(HomeFolder(folder), SharedEngine(folder.with_suffix(".engines"), HomeFolder(folder), session))
        with judge.objects.writing():
            pass  # makes the folders
        return judge

    @property
    def objects(self) -> ObjectFolder:
        return ObjectFolder(self.home)

    @property
    def keys(self) -> KeyFiles:
        return KeyFiles(self.home)

    @property
    def refusals(self) -> Rejections:
        return Rejections(self.home.refused)

    @contextmanager
    def opened(self):  # type: ignore[no-untyped-def]
        with closing(MetadataStore(self.home)) as store:
            yield store

    def record(self, name: str) -> DatasetRecord | None:
        with self.opened() as store:
            found: DatasetRecord | None = find_named(store, name)
            return found

    def sweep(self) -> None:
        with self.opened() as store:
            self.objects.sweep(store.list_referenced_objects, now=NOW)

    def take(
        self,
        proposal: Proposal,
        files: Mapping[Multihash, bytes],
        *,
        policy: Policy | None = None,
        now: Timestamp = NOW,
    ) -> AcceptanceReport:
        """Judge an offer; fetching is putting ``files`` into the object folder."""
        try:
            with self.opened() as store, self.objects.writing():
                home = make_home(self.home, store)
                acceptor = Acceptor(home, self.engines, Rejecter(home, self.engines, self.refusals, now))
                candidate = acceptor.examine(proposal)
                with open_arrivals(store, self.objects, candidate.dataset_id, BY_PULLS) as arrivals:
                    try:
                        for needed in candidate.needed_objects():
                            with suppress(KeyError), arrivals.stage() as staged:
                                staged.write(files[needed.hash])
                                arrivals.put(staged, needed.hash)
                        return acceptor.accept(candidate, arrivals, policy=policy)
                    finally:
                        arrivals.drop()
        except OdfError:
            self.sweep()
            raise

    def accept(self, chain: PeerChain, *, base: Head | None = None, **options: Any) -> AcceptanceReport:
        """Take an honest chain."""
        return self.take(chain.proposal(base), chain.files, **options)

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the home, by its path; but for staging, and for rows of what is held, which may be made anew.

        While a connection is open, SQLite keeps locks in an index file and may have an empty log: neither is content.
        """
        paths = {str(p.relative_to(self.home.path)): p for p in sorted(self.home.path.rglob("*")) if p.is_file()}
        passing = ("staging/", "rows/")
        files = {name: path.read_bytes() for name, path in paths.items() if not name.startswith(passing)}
        return {n: c for n, c in files.items() if not n.endswith("-shm") and not (n.endswith("-wal") and not c)}

    def reject(
        self, proposal: Proposal, files: Mapping[Multihash, bytes], *, rule: str, policy: Policy | None = None
    ) -> dict[str, Any]:
        """Check that an offer is rejected for ``rule``, changes nothing and leaves whole evidence; give the report."""
        before = self.snapshot()
        with pytest.raises(ProposalRejectedError) as caught:
            self.take(proposal, files, policy=policy)
        assert self.snapshot() == before
        assert self._leftovers() == []
        made = (Multihash.parse(path.name.partition("-")[0]) for path in self.home.rows.glob("*/*"))
        assert [name for name in made if not self.objects.has(name)] == []
        assert rule in caught.value.rule, caught.value
        report = self.refusals.get_report(caught.value.report["id"])
        assert report["rule"] == caught.value.rule
        assert report["reason"] == str(caught.value)
        assert report["source"] == proposal.source_url
        self._check_evidence(Path(report["folder"]), proposal)
        return report

    def _leftovers(self) -> list[str]:
        kept = {self.home.refused.name, self.home.downloads.name, self.home.engines.name}
        return [path.name for path in self.home.staging.iterdir() if path.name not in kept]

    def _check_evidence(self, folder: Path, proposal: Proposal) -> None:
        assert list(self.refusals.iter_proposed(folder)) == list(proposal.blocks)
        head = folder / "signed-head"
        assert (head.read_bytes() if head.exists() else None) == proposal.signed_head


@dataclass
class PublisherHome:
    """A node that has keys: writes roots from ``PeerChain`` and runs derivatives with a real engine."""

    judge: Judge

    def keep(self, chain: PeerChain) -> DatasetRecord:
        """Take a chain over as this node's own, or what is new in it."""
        with self.judge.opened() as store, self.judge.objects.writing():
            known = store.find_dataset(chain.id)
            first = 0 if known is None else known.head.sequence_number + 1
            self.judge.keys.put_dataset_key(PrivateKey(chain.key))
            for content in chain.files.values():
                with self.judge.objects.stage() as staged:
                    staged.write(content)
                    self.judge.objects.put(staged, Multihash.of_sha3_256(content))
            kind = chain.blocks[0].event.dataset_kind  # type: ignore[union-attr]
            new = NewDataset(name=chain.name, kind=kind, origin=Origin.OWN, created_at=NOON)
            return commit_with_objects(
                store,
                self.judge.objects,
                Commit(
                    dataset_id=chain.id,
                    expected_head=None if known is None else known.head.hash,
                    blocks=tuple(
                        NewBlock.of(b, s, r)
                        for b, s, r in zip(chain.blocks, chain.signatures, chain.step_records, strict=True)
                    )[first:],
                    chain_state=encode_state(chain.state()),
                    objects=tuple(chain.files),
                    signed_head=chain.signed_head(),
                    new_dataset=new if known is None else None,
                ),
                {},
            )

    def run(self, chain: PeerChain, *, at: Timestamp) -> TransformReport:
        """Run the next step of a derivative, and take its new blocks over into ``chain``."""
        with self.judge.opened() as store:
            transformer = Transformer(make_home(self.judge.home, store), self.judge.engines)
            report = transformer.run_next(store.find_dataset(chain.id), system_time=at)
            for stored in store.iter_blocks(chain.id, after=chain.head.sequence_number):
                block = decode_block(stored.raw, expected_hash=stored.hash)
                record = store.find_step_record(chain.id, block.hash)
                chain.blocks.append(block)
                chain.signatures.append(stored.signature)
                chain.step_records.append(None if record is None else record.raw)
                if isinstance(block.event, ExecuteTransform) and block.event.new_data is not None:
                    name = block.event.new_data.physical_hash
                    chain.files[name] = self.judge.objects.get_path(name).read_bytes()
            return report


def rejection_of(action: Callable[[], Any]) -> RejectedError:
    """Run something that has to be rejected and return why."""
    with pytest.raises(RejectedError) as caught:
        action()
    return caught.value
