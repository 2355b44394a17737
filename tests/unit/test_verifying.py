"""Verifying what is held: damage in the database or in files is a finding with its rule, never an error."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.audits import list_tasks
from odf_node.cli.audit_page import render_audit
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Count, Silence
from odf_node.records.datasets import DatasetRecord
from odf_node.trust import verifying
from odf_node.trust.auditing import publish_finding, run_tasks
from odf_node.trust.verifying import VerificationFinding, VerifyOptions
from odf_protocol.events import DatasetKind, Seed
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy
from odf_protocol.signatures import sign_block
from odf_protocol.verification_statements import Checked, decode_verification
from support.exchange_nodes import TestNode
from support.nodes import RealNode
from support.offers import NOW, Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, select
from support.signing import NEW_KEY, OTHER_KEY

SECOND_SLICE = 3


@pytest.fixture
def record(judge: Judge, chain: PeerChain) -> DatasetRecord:
    return judge.accept(chain).record


def node_of(judge: Judge) -> Node:
    return Node(HomeFolder(judge.home.path), FixedClock(NOW))


@pytest.fixture
def node(judge: Judge) -> Iterator[Node]:
    node = node_of(judge)
    yield node
    node.close()


def verify(judge: Judge, name: str = "cities") -> VerificationFinding:
    node = node_of(judge)
    try:
        (record,) = node.verifier.select([name], recursive=False)
        return node.verifier.verify(record, replay=True, on_progress=Silence().on_progress)
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
    judge.take(early.proposal(signed_head=None), early.files, policy=Policy.UNSIGNED)
    judge.accept(chain, base=early.head)

    finding = verify(judge)

    assert (finding.is_valid, finding.signed) == (True, False)
    assert "unsigned" in finding.describe()[0]


def test_command_ends_with_the_code_of_a_rejection(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    def run() -> int:
        return RealNode(judge.home.path).run("verify", "cities", "-o", "json").code

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
    finding = node.verifier.verify(record, replay=False, on_progress=Silence().on_progress)
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


def verify_with(judge: Judge, **options: Any) -> VerificationFinding:
    node = node_of(judge)
    try:
        (record,) = node.verifier.select(["cities"], recursive=False)
        return node.verifier.verify(record, on_progress=Silence().on_progress, options=VerifyOptions(**options))
    finally:
        node.close()


def test_verification_says_how_many_rows_of_how_many_it_has_read(judge: Judge, record: DatasetRecord) -> None:
    node, stated = node_of(judge), list[tuple[str, Count | None]]()
    node.verifier.verify(record, on_progress=lambda text, count=None: stated.append((text, count)))
    node.close()
    assert [count for text, count in stated if text == "checking rows"] == [Count(0, 6, "rows"), Count(3, 6, "rows")]


def test_what_was_verified_is_remembered_and_only_new_blocks_are_read(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(2)
    judge.accept(early)
    assert verify_with(judge).remembered == 0
    judge.accept(chain, base=early.head)

    finding = verify_with(judge)

    assert (finding.remembered, finding.rows, finding.slices_in_range) == (3, 3, 1)
    assert "4 blocks, 3 of them verified before, 3 rows in the others, " in finding.describe()[0]
    assert finding.first is not None
    assert finding.first.sequence_number == SECOND_SLICE
    again = verify_with(judge)
    assert (again.remembered, again.rows, again.first) == (4, 0, None)
    assert "4 blocks, verified before ('--all' reads them again), " in again.describe()[0]
    assert verify_with(judge, everything=True).rows == 6


def test_missing_file_of_a_remembered_block_is_found(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    assert verify_with(judge).is_valid
    judge.objects.delete(chain.blocks[SECOND_SLICE].event.new_data.physical_hash)  # type: ignore[union-attr]

    assert verify_with(judge).rule == "ObjectNotFoundError"


def test_memory_of_another_history_does_not_count(judge: Judge, record: DatasetRecord, chain: PeerChain) -> None:
    assert verify_with(judge).is_valid
    tamper(judge, "UPDATE verified SET hash = ?", Multihash.of_sha3_256(b"x").to_bytes())

    assert verify_with(judge).remembered == 0


def test_interrupted_verification_goes_on_where_it_was(
    judge: Judge, record: DatasetRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "CHUNK_BLOCKS", 3)
    node = node_of(judge)

    def stop_at_last(text: str, count: Count | None = None) -> None:
        # Of pieces nobody knows how many rows all of them have.
        if count == Count(3, None, "rows"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        node.verifier.verify(record, on_progress=stop_at_last, options=VerifyOptions())
    node.close()

    assert verify_with(judge).remembered == 3


def test_sample_reads_some_slices_says_so_and_is_not_remembered(judge: Judge, record: DatasetRecord) -> None:
    finding = verify_with(judge, sample=1)

    assert (finding.slices, finding.slices_in_range, finding.rows) == (1, 2, 3)
    assert "a sample of 1 of 2 slices" in finding.describe()[0]
    assert verify_with(judge).remembered == 0


@pytest.mark.parametrize("is_damaged", [False, True])
def test_finding_is_signed_and_kept_good_or_bad(
    judge: Judge, record: DatasetRecord, node: Node, is_damaged: bool
) -> None:
    finding = verify_with(judge)
    if is_damaged:
        finding = replace(finding, problem="rows differ", rule="ROWS-5 logical-hash", problem_block=3)

    raw = publish_finding(finding, node.store, node.keys, now=NOW)

    assert raw is not None
    stated = decode_verification(raw)
    assert (stated.verdict.value, stated.checked.is_complete) == (("divergence" if is_damaged else "success"), True)
    assert [item.raw for item in node.store.iter_attestations(record.id)][-1] == raw
    if not is_damaged:
        assert publish_finding(verify_with(judge), node.store, node.keys, now=NOW) is None


def test_what_was_verified_before_it_was_attested_is_attested_with_the_rest(judge: Judge, chain: PeerChain) -> None:
    early = chain.up_to(2)
    judge.accept(early)
    assert verify_with(judge).remembered == 0
    judge.accept(chain, base=early.head)
    node = node_of(judge)

    raw = publish_finding(verify_with(judge), node.store, node.keys, now=NOW)

    assert raw is not None
    stated = decode_verification(raw)
    assert (stated.first.sequence_number, stated.last.hash) == (0, chain.head.hash)
    assert stated.checked == Checked(blocks=4, slices=2, slices_in_range=2, rows=6, steps=0, steps_in_range=0)
    assert publish_finding(verify_with(judge), node.store, node.keys, now=NOW) is None
    node.close()


def test_all_of_it_is_attested_from_memory(judge: Judge, record: DatasetRecord, node: Node) -> None:
    verify_with(judge)

    raw = publish_finding(verify_with(judge), node.store, node.keys, now=NOW)

    assert raw is not None
    assert decode_verification(raw).checked.blocks == record.head.sequence_number + 1


def test_memory_of_an_address_is_not_stated_about_what_is_held(judge: Judge, record: DatasetRecord, node: Node) -> None:
    other = replace(verify_with(judge), first=None, last=None, remembered=4)
    elsewhere = Head(3, Multihash.of_sha3_256(b"another history"))

    for remembered in (None, elsewhere):
        finding = replace(other, remembered_head=remembered)
        assert publish_finding(finding, node.store, node.keys, now=NOW) is None


def test_several_are_verified_at_once_and_reported_in_order(judge: Judge, record: DatasetRecord, node: Node) -> None:
    tasks = list_tasks(
        node, ["cities", "%it%"], recursive=False, options=VerifyOptions(everything=True), own_nodes=True
    )
    tasks = [tasks[0]] * 3

    findings = list(run_tasks(tasks, 3, Silence().on_progress))

    assert [finding.rows for finding in findings] == [6, 6, 6]


def test_dataset_at_an_address_is_verified_without_being_taken(judge: Judge, tmp_path: Path, chain: PeerChain) -> None:
    served = TestNode.create(tmp_path / "served")
    PublisherHome(Judge(served.home, judge.engines)).keep(chain)
    words = ["verify", "-o", "json", "--attest", "--home", str(judge.home.path)]

    async def ask() -> Any:
        async with served.serving() as address:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "odf_node", *words, f"{address}/cities", stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            return process.returncode, json.loads(out)

    code, (finding,) = asyncio.run(ask())
    assert (code, finding["valid"], finding["rows"]) == (0, True, 6)
    with judge.opened() as store:
        assert store.list_datasets() == ()
        assert len(list(store.iter_attestations(chain.id))) == 1


def test_page_escapes_what_strangers_wrote() -> None:
    finding = {
        "dataset": "<b>x", "id": None, "valid": False, "blocks": 1, "rows": 0, "slices": 0, "slicesInRange": 0,
        "signed": True, "replayedSteps": None, "partial": None, "notChecked": None,
        "problem": "<script>alert(1)</script>",
        "divergence": {"cells": [{"offset": 1, "column": "<i>", "published": "<u>", "recomputed": None}]},
    }  # fmt: skip
    page = render_audit([finding], "2024-01-01")
    assert all(text not in page for text in ("<b>x", "<script>", "<i>", "<u>"))
    assert "&lt;script&gt;" in page
