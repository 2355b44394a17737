"""Verifying what is held: damage in the database or in files is a finding with its rule, never an error."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.home import Home
from odf_node.ports import DatasetRecord
from odf_node.services.verifying import Finding
from odf_protocol.events import DatasetKind, Seed
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy
from odf_protocol.signatures import sign_block
from support.offers import NOW, Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, select
from support.signing import NEW_KEY, OTHER_KEY

SECOND_SLICE = 3


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge.create(tmp_path / "home")


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path)


@pytest.fixture
def record(judge: Judge, chain: PeerChain) -> DatasetRecord:
    return judge.accept(chain).record


def node_of(judge: Judge) -> Node:
    return Node(Home(judge.home.path), FixedClock(NOW))


@pytest.fixture
def node(judge: Judge) -> Iterator[Node]:
    node = node_of(judge)
    yield node
    node.close()


def verify(judge: Judge, name: str = "cities") -> Finding:
    node = node_of(judge)
    try:
        (record,) = node.verifier.select([name], recursive=False)
        return node.verifier.verify(record, replay=True, say=lambda _text: None)
    finally:
        node.close()


def tamper(judge: Judge, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(judge.home.database)) as connection, connection:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement, values).rowcount == 1


def test_sound_dataset_is_valid_and_told_so(judge: Judge, record: DatasetRecord) -> None:
    finding = verify(judge)

    assert finding.is_valid
    assert (finding.blocks, finding.rows, finding.signed) == (4, 6, True)
    assert finding.describe() == ["cities: valid: 4 blocks, 6 rows, all signed by the dataset's key"]


def test_changed_byte_of_a_file_is_found(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    name = chain.blocks[SECOND_SLICE].event.new_data.physical_hash  # type: ignore[union-attr]
    path = judge.objects.get_path(name)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))

    finding = verify(judge)

    assert (finding.is_valid, finding.rule) == (False, "ObjectCorruptError")
    assert str(name) in finding.problem
    assert finding.describe()[0].startswith("cities: NOT VALID: ")


def test_missing_file_is_found(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    judge.objects.delete(chain.blocks[SECOND_SLICE].event.new_data.physical_hash)  # type: ignore[union-attr]

    assert verify(judge).rule == "ObjectNotFoundError"


def test_changed_block_is_found(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    raw = bytearray(chain.blocks[1].raw)
    raw[-3] ^= 1
    tamper(judge, "UPDATE blocks SET raw = ? WHERE sequence_number = 1", bytes(raw))

    assert not verify(judge).is_valid


def test_replaced_block_is_found_by_its_link(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    """Block, hash column and signature fit each other; the chain does not stand on it."""
    other = root_chain(chain.folder, slices=0).add_rows([("Atlantis", 1)]).blocks[2]
    signature = sign_block(chain.key, chain.id, 2, other.hash)
    tamper(
        judge,
        "UPDATE blocks SET raw = ?, hash = ?, signature = ? WHERE sequence_number = 2",
        other.raw,
        other.hash.to_bytes(),
        signature,
    )

    finding = verify(judge)

    assert not finding.is_valid
    assert finding.rule.startswith("CHAIN-7")


def test_changed_signature_is_found(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    wrong = sign_block(OTHER_KEY, chain.id, 1, chain.blocks[1].hash)
    tamper(judge, "UPDATE blocks SET signature = ? WHERE sequence_number = 1", wrong)
    assert verify(judge).rule.startswith("SIG-1")
    tamper(judge, "UPDATE blocks SET signature = NULL WHERE sequence_number = 1")
    assert verify(judge).rule == "SIG-1 block-is-signed"


def test_signed_head_of_another_is_found(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    tamper(judge, "UPDATE signed_heads SET raw = ?", chain.signed_head(key=OTHER_KEY))

    assert verify(judge).rule == "HEAD-4 signed-by-the-dataset-key"


def test_file_replaced_with_all_its_records_is_found_by_its_rows(
    judge: Judge, record: DatasetRecord, chain: PeerChain
) -> None:
    """Whoever can write the database but has no key cannot make the block fit the rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = chain.blocks[SECOND_SLICE].event.new_data.physical_hash  # type: ignore[union-attr]
    table = pq.read_table(pa.BufferReader(chain.files[name]))
    index = table.schema.get_field_index("people")
    content = parquet_bytes(table.set_column(index, table.schema.field(index), pa.array([0, 0, 0])))
    path = judge.objects.get_path(name)
    path.write_bytes(content)

    assert verify(judge).rule == "ObjectCorruptError"
    assert Multihash.of_sha3_256(content) != name


def test_dataset_that_began_without_signatures_is_valid_and_called_unsigned(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(2).copy(signatures=[None] * 3)
    judge.take(early.offer(signed_head=None), early.files, policy=Policy.UNSIGNED)
    judge.accept(chain, base=early.head)

    finding = verify(judge)

    assert (finding.is_valid, finding.signed) == (True, False)
    assert "signed by nobody" in finding.describe()[0]


def test_command_ends_with_the_code_of_a_refusal(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    def run() -> int:
        words = ["verify", "cities", "--home", str(judge.home.path), "-o", "json"]
        return subprocess.run([sys.executable, "-m", "odf_node", *words], capture_output=True, check=False).returncode

    assert run() == 0
    judge.objects.delete(chain.blocks[SECOND_SLICE].event.new_data.physical_hash)  # type: ignore[union-attr]
    assert run() == 4


def test_inputs_are_verified_first_when_asked_for(judge: Judge, node: Node, tmp_path: Path, chain: PeerChain) -> None:
    home = PublisherHome(judge)
    home.keep(chain)
    derivative = PeerChain(tmp_path, key=NEW_KEY, name="a.derived")
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    home.keep(derivative.add(select("SELECT 1", chain.id)))

    assert [r.name for r in node.verifier.select(["a.derived"], recursive=True)] == ["cities", "a.derived"]
    assert [r.name for r in node.verifier.select(["a.derived"], recursive=False)] == ["a.derived"]
    (record,) = node.verifier.select(["a.derived"], recursive=False)
    finding = node.verifier.verify(record, replay=False, say=lambda _text: None)
    assert (finding.is_valid, finding.not_checked) == (True, "not asked for")


def test_derivative_that_cannot_be_re_executed_is_valid_as_far_as_it_goes(
    judge: Judge, tmp_path: Path, chain: PeerChain
) -> None:
    derivative = PeerChain(tmp_path, key=NEW_KEY, name="derived")
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    PublisherHome(judge).keep(derivative.add(select("SELECT 1", chain.id)))

    finding = verify(judge, "derived")

    assert (finding.is_valid, finding.replayed_steps) == (True, None)
    assert "input 'in0'" in finding.not_checked
    assert "not re-executed" in finding.describe()[1]
