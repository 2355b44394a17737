"""The gate, step by step, with roots: each step accepts what is honest and rejects what is not.

Every rejection here is checked to change no byte of the home and to leave its evidence whole (``Judge.reject``).
Derivatives, which need an engine, are in ``tests/e2e/test_reexecution.py``; slices that attack their reader in
``tests/integration/rows/test_hostile_slices.py``.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odf_node.acceptance import acceptor as acceptance
from odf_node.acceptance.rejecting import Rejecter
from odf_node.records.datasets import Origin
from odf_node.records.errors import HeadMovedError
from odf_node.store.object_names import BY_PULLS, open_arrivals
from odf_protocol.equivocation import check_equivocation
from odf_protocol.events import (
    AddData,
    AddPushSource,
    Checkpoint,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeInt64,
    DataTypeString,
    ExecuteTransform,
    MergeStrategyAppend,
    OffsetInterval,
    ReadStepNdJson,
    Seed,
    SetDataSchema,
    SetInfo,
)
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy, Trust
from odf_protocol.signatures import sign_block
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.homes import make_home
from support.offers import (
    CITIES,
    CITY_SCHEMA,
    MORE_CITIES,
    NOON,
    Judge,
    PeerChain,
    PublisherHome,
    parquet_bytes,
    root_chain,
    select,
    slice_table,
)
from support.signing import DATASET_KEY, NEW_KEY, OTHER_KEY, dataset_of

FIRST_SLICE, SECOND_SLICE = 2, 3  # blocks of root_chain


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge.create(tmp_path / "judge")


# What is accepted


def test_honest_root_is_accepted_on_its_signatures(judge: Judge, chain: PeerChain) -> None:
    report = judge.accept(chain)

    assert (report.new_blocks, report.new_rows, report.replayed_steps) == (4, 6, 0)
    record = judge.record("cities")
    assert record is not None
    assert (record.id, record.head, record.trust, record.origin) == (chain.id, chain.head, Trust.SIGNED, Origin.PULLED)
    with judge.opened() as store:
        assert [(b.raw, b.signature) for b in store.iter_blocks(chain.id)] == [
            (b.raw, s) for b, s in zip(chain.blocks, chain.signatures, strict=True)
        ]
        assert store.find_signed_head(chain.id).raw == chain.signed_head()
        assert set(judge.objects.iter_hashes()) == set(chain.files) == set(store.list_referenced_objects())
    assert list(judge.refusals.iter_reports()) == []


def test_honest_growth_is_accepted_and_only_new_blocks_are_needed(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    judge.accept(early)
    new = chain.blocks[SECOND_SLICE].event.new_data.physical_hash  # type: ignore[union-attr]

    report = judge.take(chain.proposal(early.head), {new: chain.files[new]})

    assert (report.new_blocks, report.new_rows, report.first_contact) == (1, 3, False)
    with judge.opened() as store:
        assert [(a.grounds.first, a.grounds.last) for a in store.iter_acceptances(chain.id)] == [(0, 2), (3, 3)]


def test_head_without_rows_is_accepted(judge: Judge, tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=0).add(SetInfo(description="nothing yet"))

    assert judge.accept(chain).new_rows == 0


def test_unsigned_root_is_accepted_under_the_policy_that_says_so_and_stays_unsigned(
    judge: Judge, chain: PeerChain
) -> None:
    unsigned = chain.copy(signatures=[None] * len(chain.blocks))
    early = unsigned.up_to(FIRST_SLICE)
    judge.take(early.proposal(signed_head=None), early.files, policy=Policy.UNSIGNED)

    judge.take(chain.proposal(early.head), chain.files)

    record = judge.record("cities")
    assert record is not None
    # What began without signatures does not become better than its beginning.
    assert (record.trust, record.pinned_key, record.head) == (Trust.UNSIGNED, None, chain.head)


@pytest.mark.parametrize("policy", [Policy.REEXECUTE, Policy.INTEGRITY, Policy.UNSIGNED])
def test_signed_root_is_accepted_as_signed_under_every_policy(judge: Judge, chain: PeerChain, policy: Policy) -> None:
    judge.accept(chain, policy=policy)

    record = judge.record("cities")
    assert record is not None
    assert (record.trust, record.pinned_key is not None) == (Trust.SIGNED, True)


# (0) The offer is bounded


def test_offer_without_blocks_is_rejected(judge: Judge, chain: PeerChain) -> None:
    judge.reject(chain.proposal(blocks=[]), {}, rule="EX-LIMIT")


def test_offer_of_too_many_blocks_is_rejected_before_one_is_read(
    judge: Judge, chain: PeerChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptance, "MAX_BLOCKS", 3)

    judge.reject(chain.proposal(), chain.files, rule="EX-LIMIT")


# (1) Whose dataset it is


def test_other_dataset_under_a_held_name_is_rejected(judge: Judge, chain: PeerChain, tmp_path: Path) -> None:
    judge.accept(chain)
    other = root_chain(tmp_path, key=OTHER_KEY, name="CITIES")

    report = judge.reject(other.proposal(), other.files, rule="ACCEPT-8 name-keeps-its-identity")

    assert (report["expected"], report["found"]) == (str(chain.id), str(other.id))


def test_other_dataset_than_the_user_named_is_rejected(judge: Judge, chain: PeerChain) -> None:
    judge.reject(
        chain.proposal(expected_id=dataset_of(OTHER_KEY)), chain.files, rule="ACCEPT-8 identity-is-the-expected"
    )
    assert judge.take(chain.proposal(expected_id=chain.id), chain.files).first_contact


def test_growth_of_another_dataset_than_the_user_named_is_rejected(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    judge.accept(early)
    proposal = chain.proposal(early.head, expected_id=dataset_of(OTHER_KEY))

    judge.reject(proposal, chain.files, rule="ACCEPT-8 identity-is-the-expected")


def test_chain_that_does_not_start_with_a_seed_is_rejected(judge: Judge, chain: PeerChain) -> None:
    judge.reject(chain.proposal(blocks=chain.proposal().blocks[1:]), chain.files, rule="CHAIN-1")


def test_blocks_of_others_never_go_into_a_dataset_of_our_own(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    early.files = {k: v for k, v in early.files.items() if k == early.blocks[-1].event.new_data.physical_hash}  # type: ignore[union-attr]
    PublisherHome(judge).keep(early)

    judge.reject(chain.proposal(early.head), chain.files, rule="ACCEPT-8 own-datasets")
    judge.reject(chain.proposal(), chain.files, rule="ACCEPT-8 own-datasets")


# (2) The signed head


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"dataset_id": dataset_of(OTHER_KEY)}, "HEAD-4 head-of-this-dataset"),
        ({"key": OTHER_KEY}, "HEAD-4 signed-by-the-dataset-key"),
        ({"dataset_id": dataset_of(OTHER_KEY), "key": OTHER_KEY}, "HEAD-4 head-of-this-dataset"),
        ({"block_hash": Multihash.of_sha3_256(b"other")}, "HEAD signed-head-is-the-last-block"),
        ({"sequence_number": 2}, "HEAD signed-head-is-the-last-block"),
        ({"sequence_number": 9}, "HEAD signed-head-is-the-last-block"),
    ],
)
def test_signed_head_that_says_something_else_is_rejected(
    judge: Judge, chain: PeerChain, changes: dict[str, Any], rule: str
) -> None:
    judge.reject(chain.proposal(signed_head=chain.signed_head(**changes)), chain.files, rule=rule)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda head: b"", id="empty"),
        pytest.param(lambda head: head[:-1], id="cut"),
        pytest.param(lambda head: head[:40] + bytes([head[40] ^ 1]) + head[41:], id="signature-bit"),
        pytest.param(lambda head: head.replace(b'"head"', b'"haed"'), id="payload"),
        pytest.param(lambda head: head + b" " * 5000, id="padded"),
    ],
)
def test_damaged_signed_head_is_rejected(judge: Judge, chain: PeerChain, damage: Callable[[bytes], bytes]) -> None:
    judge.reject(chain.proposal(signed_head=damage(chain.signed_head())), chain.files, rule="")


def test_old_head_cannot_vouch_for_newer_blocks(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    judge.accept(early)

    judge.reject(chain.proposal(early.head, signed_head=early.signed_head()), chain.files, rule="HEAD signed-head")


def test_reexecuted_old_chain_is_rejected_and_takes_nothing_back(judge: Judge, chain: PeerChain) -> None:
    judge.accept(chain)
    early = chain.up_to(FIRST_SLICE)

    judge.reject(early.proposal(), early.files, rule="ACCEPT-9")


@pytest.mark.parametrize("policy", [None, Policy.UNSIGNED])
def test_signed_dataset_cannot_be_continued_without_signatures(
    judge: Judge, chain: PeerChain, policy: Policy | None
) -> None:
    early = chain.up_to(FIRST_SLICE)
    judge.accept(early)
    stripped = chain.copy(signatures=[None] * len(chain.blocks))

    proposal = stripped.proposal(early.head, signed_head=None)
    judge.reject(proposal, chain.files, rule="ACCEPT-3 signed-dataset-stays-signed", policy=policy)
    proposal = chain.proposal(early.head, signed_head=None)
    judge.reject(proposal, chain.files, rule="ACCEPT-3 signed-dataset-stays-signed", policy=policy)


# (3) Every block


def test_block_without_signature_is_rejected(judge: Judge, chain: PeerChain) -> None:
    chain.signatures[1] = None

    assert judge.reject(chain.proposal(), chain.files, rule="SIG-1 block-is-signed")["block"] == 1


def _by(key: bytes, chain: PeerChain, number: int, block: int | None = None) -> bytes:
    signed = chain.blocks[number if block is None else block]
    return sign_block(key, chain.id, number, signed.hash)


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda chain: _by(OTHER_KEY, chain, 3), id="another-key"),
        pytest.param(lambda chain: chain.signatures[2], id="of-another-block"),
        pytest.param(lambda chain: _by(DATASET_KEY, chain, 3, 2), id="same-number-another-hash"),
        pytest.param(lambda chain: _by(DATASET_KEY, chain, 2, 3), id="another-number-same-hash"),
        pytest.param(
            lambda chain: sign_block(DATASET_KEY, dataset_of(OTHER_KEY), 3, chain.head.hash), id="another-dataset"
        ),
        pytest.param(lambda chain: bytes(64), id="zeros"),
        pytest.param(lambda chain: b"", id="empty"),
    ],
)
@pytest.mark.parametrize("with_head", [True, False])
def test_wrong_block_signature_is_rejected_with_and_without_a_signed_head(
    judge: Judge, chain: PeerChain, forge: Callable[[PeerChain], bytes], with_head: bool
) -> None:
    chain.signatures[3] = forge(chain)
    head = chain.signed_head() if with_head else None

    report = judge.reject(chain.proposal(signed_head=head), chain.files, rule="SIG-", policy=Policy.UNSIGNED)

    assert report["block"] == 3


def test_other_seed_for_a_held_dataset_is_rejected_with_proof_of_two_histories(
    judge: Judge, chain: PeerChain, tmp_path: Path
) -> None:
    judge.accept(chain)
    other = PeerChain(tmp_path)
    # The same key says that its dataset began otherwise.
    other.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT), at=NOON)
    other.add(SetInfo(description="another beginning")).add(SetDataSchema(schema=CITY_SCHEMA)).add_rows(CITIES)
    assert len(other.blocks) == len(chain.blocks)

    report = judge.reject(other.proposal(), other.files, rule="ACCEPT-9 offer-continues-the-history-held-here")

    _check_proof(report, chain)


def test_fork_below_the_held_head_is_rejected_with_proof(judge: Judge, chain: PeerChain) -> None:
    judge.accept(chain)
    fork = chain.up_to(FIRST_SLICE).add_rows([("Atlantis", 1)]).add(SetInfo(description="longer"))

    report = judge.reject(fork.proposal(), fork.files, rule="ACCEPT-9")
    _check_proof(report, chain)
    report = judge.reject(fork.proposal(chain.head), fork.files, rule="CHAIN-7")
    _check_proof(report, chain)


def test_shorter_fork_is_rejected_with_proof(judge: Judge, chain: PeerChain, tmp_path: Path) -> None:
    judge.accept(chain)
    fork = chain.up_to(1).add_rows([("Atlantis", 1)])

    report = judge.reject(fork.proposal(), fork.files, rule="ACCEPT-9")

    _check_proof(report, chain)


def test_fork_by_another_key_proves_nothing_against_ours(judge: Judge, chain: PeerChain) -> None:
    judge.accept(chain)
    fork = chain.replacing(SECOND_SLICE, lambda event: replace(event, new_watermark=NOON), key=OTHER_KEY)

    report = judge.reject(fork.proposal(), fork.files, rule="HEAD-4")

    assert "equivocation" not in report


def _check_proof(report: dict[str, Any], chain: PeerChain) -> None:
    proof = check_equivocation((Path(report["folder"]) / "equivocation.json").read_bytes())
    assert (proof.dataset_id, proof.signer.public_key) == (chain.id, chain.id.public_key)
    assert report["equivocation"] == proof.explain()


def test_truncated_chain_is_rejected(judge: Judge, chain: PeerChain) -> None:
    blocks = chain.proposal().blocks
    judge.reject(chain.proposal(blocks=blocks[:2]), chain.files, rule="HEAD")
    judge.reject(chain.proposal(blocks=[*blocks[:2], *blocks[3:]]), chain.files, rule="CHAIN-6")
    judge.reject(chain.proposal(blocks=[blocks[0], blocks[0], *blocks[1:]]), chain.files, rule="CHAIN-4")


def test_chain_that_does_not_stand_on_our_head_is_rejected(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    judge.accept(early)
    gap = chain.copy().add(SetInfo(description="later"))

    proposal = gap.proposal(early.head)
    judge.reject(replace(proposal, blocks=proposal.blocks[1:]), gap.files, rule="CHAIN-6")


def test_blocks_that_are_none_are_rejected(judge: Judge, chain: PeerChain) -> None:
    for raw in (b"", b"\x00" * 100, chain.blocks[1].raw[:-8], chain.blocks[1].raw + b"\x00"):
        proposal = chain.proposal()
        blocks = [*proposal.blocks]
        blocks[1] = replace(blocks[1], raw=raw)
        judge.reject(replace(proposal, blocks=blocks), chain.files, rule="")


def test_changed_byte_anywhere_in_a_block_is_rejected(judge: Judge, chain: PeerChain) -> None:
    proposal = chain.proposal()
    raw = proposal.blocks[2].raw
    for position in range(0, len(raw), 37):
        blocks = [*proposal.blocks]
        blocks[2] = replace(blocks[2], raw=raw[:position] + bytes([raw[position] ^ 0x40]) + raw[position + 1 :])
        judge.reject(replace(proposal, blocks=blocks), chain.files, rule="")


def test_replay_record_with_a_block_that_is_no_step_is_rejected(judge: Judge, chain: PeerChain) -> None:
    chain.step_records[2] = b"\x00" * 200

    judge.reject(chain.proposal(), chain.files, rule="")


def test_events_of_a_derivative_in_a_root_are_rejected(judge: Judge, chain: PeerChain) -> None:
    judge.reject(chain.copy().add(select("SELECT 1", dataset_of(NEW_KEY))).proposal(), chain.files, rule="CHAIN-10")
    step = ExecuteTransform(query_inputs=(), new_watermark=NOON)
    judge.reject(chain.copy().add(step).proposal(), chain.files, rule="CHAIN-10")


def test_copy_that_grew_meanwhile_is_no_fault_of_the_peer(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    judge.accept(early)
    judge.accept(chain, base=early.head)
    before = judge.snapshot()

    with pytest.raises(HeadMovedError):
        judge.take(chain.proposal(early.head), chain.files)

    assert judge.snapshot() == before
    assert list(judge.refusals.iter_reports()) == []


# (4) Objects


def test_size_other_than_the_block_says_is_rejected(judge: Judge, chain: PeerChain) -> None:
    lying = chain.replacing(
        SECOND_SLICE, lambda event: replace(event, new_data=replace(event.new_data, size=event.new_data.size + 1))
    )

    report = judge.reject(lying.proposal(), lying.files, rule="EX-OBJECT size-is-what-the-block-says")

    name = lying.blocks[SECOND_SLICE].event.new_data.physical_hash  # type: ignore[union-attr]
    assert (Path(report["folder"]) / f"{name}.offered").read_bytes() == chain.files[name]


def test_checkpoints_are_objects_too(judge: Judge, chain: PeerChain) -> None:
    content = b"state of an engine"
    checkpoint = Checkpoint(physical_hash=Multihash.of_sha3_256(content), size=len(content))
    with_state = chain.replacing(SECOND_SLICE, lambda event: replace(event, new_checkpoint=checkpoint))
    with_state.files[checkpoint.physical_hash] = content + b"!"
    lying = chain.replacing(SECOND_SLICE, lambda e: replace(e, new_checkpoint=replace(checkpoint, size=3)))

    judge.reject(lying.proposal(), {**chain.files, checkpoint.physical_hash: content}, rule="EX-OBJECT")
    judge.take(with_state.proposal(), {**chain.files, checkpoint.physical_hash: content})
    assert judge.objects.has(checkpoint.physical_hash)


# (5) Rows. The slice, both hashes, the block, links and signatures fit: only what the rows say is wrong.

BLOCK_TIME = NOON.unix_ms + 1000 * SECOND_SLICE


def _table(**columns: Any) -> pa.Table:
    chain_time = Timestamp(NOON.seconds + SECOND_SLICE)
    return slice_table(MORE_CITIES, first_offset=3, at=chain_time, **columns)


def _with_column(name: str, values: list[Any], data_type: pa.DataType, *, nullable: bool = False) -> pa.Table:
    table = _table()
    index = table.schema.get_field_index(name)
    return table.set_column(index, pa.field(name, data_type, nullable), pa.array(values, data_type))


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        pytest.param(_table(offset=[3, 5, 4]), "ROWS-2 offsets", id="shuffled-offsets"),
        pytest.param(_table(offset=[3, 4, 6]), "ROWS-2 offsets", id="offset-gap"),
        pytest.param(_table(offset=[0, 1, 2]), "ROWS-2 offsets", id="offsets-from-zero"),
        pytest.param(_table(offset=[3, 3, 4]), "ROWS-2 offsets", id="offset-twice"),
        pytest.param(_table(offset=[-1, 4, 5]), "ROWS-2 offsets", id="offset-below-zero"),
        pytest.param(_table(op=[0, 4, 0]), "ROWS-4", id="unknown-operation"),
        pytest.param(_table(op=[0, -1, 0]), "ROWS-4", id="operation-below-zero"),
        pytest.param(_table(system_time=[BLOCK_TIME, BLOCK_TIME, BLOCK_TIME + 1]), "ROWS-3", id="later-by-a-ms"),
        pytest.param(_table(system_time=[0, BLOCK_TIME, BLOCK_TIME]), "ROWS-3", id="1970"),
        pytest.param(_table().append_column("extra", pa.array([1, 2, 3])), "ROWS-1", id="extra-column"),
        pytest.param(_table().drop_columns(["people"]), "ROWS-1", id="missing-column"),
        pytest.param(_table().drop_columns(["op"]), "ROWS-1", id="missing-system-column"),
        pytest.param(_table().select([4, 5, 0, 1, 2, 3]), "ROWS-1", id="other-order"),
        pytest.param(_table().append_column("city", pa.array(["a", "b", "c"])), "ROWS-1", id="column-twice"),
        pytest.param(_with_column("people", ["a", "b", "c"], pa.string(), nullable=True), "ROWS-1", id="other-type"),
        pytest.param(_with_column("people", [1, 2, 3], pa.int32(), nullable=True), "ROWS-1", id="narrower-type"),
        pytest.param(_with_column("offset", [3, None, 5], pa.int64(), nullable=True), "ROWS-1", id="null-offset"),
        pytest.param(_with_column("op", [0, None, 0], pa.int32(), nullable=True), "ROWS-1", id="null-operation"),
        pytest.param(
            _with_column("system_time", [None] * 3, pa.timestamp("ms", "UTC"), nullable=True), "ROWS-1", id="null-time"
        ),
        pytest.param(
            _with_column("system_time", [BLOCK_TIME] * 3, pa.timestamp("us", "UTC")), "ROWS-1", id="microseconds"
        ),
        pytest.param(
            _with_column("city", ["a", "b", "c"], pa.dictionary(pa.int8(), pa.string()), nullable=True),
            "",
            id="dictionary-type",
        ),
        pytest.param(_table().slice(0, 2), "ROWS-2 one-row-per-offset", id="a-row-too-few"),
        pytest.param(
            slice_table((*MORE_CITIES, ("x", 1)), first_offset=3, at=Timestamp(NOON.seconds + SECOND_SLICE)),
            "ROWS-2 one-row-per-offset",
            id="a-row-too-many",
        ),
        pytest.param(_table().slice(0, 0), "ROWS-2 one-row-per-offset", id="no-rows"),
    ],
)
def test_rows_that_are_not_those_of_the_block_are_rejected(
    judge: Judge, chain: PeerChain, table: pa.Table, rule: str
) -> None:
    try:
        forged = chain.replacing_slice(SECOND_SLICE, table)
    except Exception:  # noqa: BLE001 - some have no logical hash at all: then any is claimed
        content = parquet_bytes(table)
        old = chain.blocks[SECOND_SLICE].event.new_data  # type: ignore[union-attr]
        data = replace(old, physical_hash=Multihash.of_sha3_256(content), size=len(content))
        forged = chain.replacing(SECOND_SLICE, lambda event: replace(event, new_data=data))
        forged.files[data.physical_hash] = content

    report = judge.reject(forged.proposal(), forged.files, rule=rule)

    name = forged.blocks[SECOND_SLICE].event.new_data.physical_hash  # type: ignore[union-attr]
    assert (Path(report["folder"]) / f"{name}.offered").read_bytes() == forged.files[name]


def test_values_other_than_the_logical_hash_says_are_rejected(judge: Judge, chain: PeerChain) -> None:
    content = parquet_bytes(_table(people=[1, 2, 3]))
    old = chain.blocks[SECOND_SLICE].event.new_data  # type: ignore[union-attr]
    data = replace(old, physical_hash=Multihash.of_sha3_256(content), size=len(content))
    forged = chain.replacing(SECOND_SLICE, lambda event: replace(event, new_data=data))
    forged.files[data.physical_hash] = content

    assert judge.reject(forged.proposal(), forged.files, rule="ROWS-5 logical-hash")["block"] == SECOND_SLICE


def test_forged_cell_of_a_root_is_rejected_for_its_signature(judge: Judge, chain: PeerChain) -> None:
    forged = chain.replacing_slice(SECOND_SLICE, _table(people=[841_599, 1, 2]), key=OTHER_KEY)

    judge.reject(forged.proposal(), forged.files, rule="HEAD-4 signed-by-the-dataset-key")
    judge.reject(forged.proposal(signed_head=chain.signed_head()), forged.files, rule="HEAD signed-head-is-the-last")
    true_head = forged.signed_head(key=DATASET_KEY)
    judge.reject(forged.proposal(signed_head=true_head), forged.files, rule="SIG-1")


def test_file_that_is_no_parquet_is_rejected(judge: Judge, tmp_path: Path) -> None:
    for content in (b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"not parquet at all" * 10):
        chain = root_chain(tmp_path, slices=1)
        honest = chain.blocks[FIRST_SLICE].event.new_data.logical_hash  # type: ignore[union-attr]
        chain.add_slice(content, rows=1, logical_hash=honest)
        judge.reject(chain.proposal(), chain.files, rule="Malformed")


def test_schema_without_system_columns_is_rejected_with_its_rows(judge: Judge, tmp_path: Path) -> None:
    for fields in (
        (DataField(name="city", type=DataTypeString()),),
        (*system_fields(Vocabulary())[1:], DataField(name="offset", type=DataTypeString())),
        (*system_fields(Vocabulary()), DataField(name="offset", type=DataTypeInt64())),
    ):
        chain = PeerChain(tmp_path)
        schema = DataSchema(fields=fields)
        chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=schema))
        values = {
            "Int64": pa.array([0]),
            "Int32": pa.array([0], pa.int32()),
            "String": pa.array(["x"]),
            "Timestamp": pa.array([0]).cast(pa.timestamp("ms", "UTC")),
        }
        columns = [values[type(f.type).__name__.removeprefix("DataType")] for f in fields]
        arrow = pa.schema([pa.field(f.name, c.type, False) for f, c in zip(fields, columns, strict=True)])
        content = parquet_bytes(pa.Table.from_arrays(columns, schema=arrow))
        chain.add_slice(content, rows=1)
        judge.reject(chain.proposal(), chain.files, rule="ROWS-1")


def test_rows_at_the_end_of_all_offsets_are_judged(judge: Judge, tmp_path: Path) -> None:
    # The first data block of a foreign chain may claim any row before it.
    last = 2**63 - 1
    chain = root_chain(tmp_path, slices=0)
    at = Timestamp(NOON.seconds + 2)
    content = parquet_bytes(slice_table([("x", 1)], first_offset=last, at=at))
    chain.add_slice(content, rows=1, offset_interval=OffsetInterval(start=last, end=last))
    event = chain.blocks[-1].event
    honest = chain.replacing(2, lambda _: replace(event, prev_offset=last - 1))  # type: ignore[type-var]
    lying = honest.replacing_slice(2, slice_table([("x", 1)], first_offset=-(2**63), at=at))

    judge.reject(lying.proposal(), lying.files, rule="ROWS-2 offsets")
    assert judge.accept(honest).new_rows == 1


# (6) The policy


@pytest.mark.parametrize("policy", [None, Policy.REEXECUTE, Policy.INTEGRITY])
def test_unsigned_root_is_rejected_unless_the_user_says_otherwise(
    judge: Judge, chain: PeerChain, policy: Policy | None
) -> None:
    stripped = chain.copy(signatures=[None] * len(chain.blocks))

    report = judge.reject(stripped.proposal(signed_head=None), chain.files, rule="ACCEPT-3", policy=policy)

    assert "--policy unsigned" in report["reason"]


# (8) One transaction


def test_names_of_two_datasets_that_come_at_once_are_decided_by_the_store(
    judge: Judge, chain: PeerChain, tmp_path: Path
) -> None:
    """Both were examined while the name was free; the second one is told, and loses nothing of the first."""
    other = root_chain(tmp_path, key=OTHER_KEY)
    with judge.opened() as store, judge.objects.writing():
        home = make_home(judge.home, store)
        rejecter = Rejecter(home, judge.engines, judge.refusals, NOON)
        acceptor = acceptance.Acceptor(home, judge.engines, rejecter)
        second = acceptor.examine(other.proposal())
        first = acceptor.examine(chain.proposal())
        both = [open_arrivals(store, judge.objects, each.id, BY_PULLS) for each in (chain, other)]
        for arrivals, each in zip(both, (chain, other), strict=True):
            for content in each.files.values():
                with arrivals.stage() as staged:
                    staged.write(content)
                    arrivals.put(staged, Multihash.of_sha3_256(content))
        acceptor.accept(first, both[0], policy=None)
        with pytest.raises(Exception, match="belongs to dataset"):
            acceptor.accept(second, both[1], policy=None)

    record = judge.record("cities")
    assert record is not None
    assert (record.id, record.head) == (chain.id, chain.head)


def test_same_rejection_again_takes_no_more_room(judge: Judge, chain: PeerChain) -> None:
    chain.signatures[1] = None
    first = judge.reject(chain.proposal(), chain.files, rule="SIG-1")
    again = judge.reject(chain.proposal(), chain.files, rule="SIG-1")
    other = judge.reject(chain.proposal(source_url="http://elsewhere.example/cities"), chain.files, rule="SIG-1")

    assert first["id"] == again["id"] != other["id"]
    assert len(list(judge.refusals.iter_reports())) == 2


def test_push_source_of_a_stranger_is_taken_as_metadata_only(judge: Judge, chain: PeerChain) -> None:
    source = AddPushSource(source_name="default", read=ReadStepNdJson(), merge=MergeStrategyAppend())

    assert judge.accept(chain.copy().add(source)).new_blocks == 5


def test_watermark_without_rows_is_accepted(judge: Judge, chain: PeerChain) -> None:
    chain.add(AddData(prev_offset=5, new_watermark=NOON))

    assert judge.accept(chain).new_rows == 6
    record = judge.record("cities")
    assert record is not None
    assert record.head == Head(4, chain.head.hash)
