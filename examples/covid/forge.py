"""What a careful forger does: change one figure in the newest slice, and rebuild everything that would give it away.

usage: forge.py --home FORGER [--country C --day D --deaths-minus N] (--own-key | --stolen-key HOME)

The forger holds an honest copy of the dataset. The slice, its hashes, the block, its signature, the step record and
the signed head are made anew, with a key of the forger's own or with the one stolen from the home of the publisher.
Without a figure to change, what was forged before is signed anew. No check of this program stands in the way: it writes
straight into the forger's own home.
"""

import argparse
import secrets
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.reading.slices import logical_hash_of
from odf_node.adapters.key_files import KeyFiles
from odf_node.composition import Node, open_node
from odf_node.datasets.naming import get_dataset
from odf_node.home_folder import HomeFolder
from odf_node.records.commits import Acceptance, Commit, Grounds, NewBlock, NewDataset
from odf_node.records.datasets import Origin
from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.events import ExecuteTransform
from odf_protocol.head import Head
from odf_protocol.heads import sign_head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.signatures import sign_block
from odf_protocol.step_record_codec import decode_step_record, sign_step_record

DATASET = "countries.severity"


def main() -> None:
    """Forge the newest block of the forger's copy."""
    arguments = parse_arguments()
    node = open_node(arguments.home)
    record = get_dataset(node.store, DATASET)
    key = KeyFiles(HomeFolder(arguments.stolen_key)).get_dataset_key(record.id).seed if arguments.stolen_key else None
    with node.objects.writing():
        forge(node, arguments.country, arguments.day, arguments.deaths_minus, key or secrets.token_bytes(32))
    node.close()
    whose = "the publisher's stolen key" if arguments.stolen_key else "the forger's own key"
    if arguments.deaths_minus:
        print(f"forged: {arguments.deaths_minus} fewer deaths in {arguments.country} on {arguments.day}")
    print(f"signed with {whose}")


def forge(node: Node, country: str, day: str, fewer: int, key: bytes) -> None:
    """Replace the newest block, and with it the whole dataset record, of the forger's own node."""
    record = get_dataset(node.store, DATASET)
    stored = list(node.store.iter_blocks(record.id))
    records = {
        block.hash: found.raw
        for block in stored
        if (found := node.store.find_step_record(record.id, block.hash)) is not None
    }
    last = decode_block(stored[-1].raw, expected_hash=None)
    event = last.event
    assert isinstance(event, ExecuteTransform)
    assert event.new_data is not None
    honest = pq.read_table(node.objects.get_path(event.new_data.physical_hash))
    path = node.home.folder.staging / "forged.parquet"
    pq.write_table(change_figure(honest, country, day, fewer), path)
    with node.objects.stage_copy(path) as part:
        forged_data = replace(
            event.new_data, logical_hash=logical_hash_of(path), physical_hash=part.hash, size=part.size_bytes
        )
        node.objects.put(part, part.hash)
    path.unlink()
    raw = encode_block(
        replace(event, new_data=forged_data),
        system_time=last.system_time,
        prev_block_hash=last.prev_block_hash,
        sequence_number=last.sequence_number,
    )
    forged = decode_block(raw, expected_hash=None)
    blocks = [
        NewBlock.of(decode_block(item.raw, expected_hash=item.hash), item.signature, records.get(item.hash))
        for item in stored[:-1]
    ]
    replay = sign_step_record(key, decode_step_record(records[last.hash]).record)
    signature = sign_block(key, record.id, forged.sequence_number, forged.hash)
    blocks.append(NewBlock.of(forged, signature, replay))
    node.store.delete_dataset(record.id)
    node.store.commit(
        Commit(
            dataset_id=record.id,
            expected_head=None,
            blocks=tuple(blocks),
            chain_state=encode_state(state_after(blocks)),
            objects=tuple(objects_of(blocks)),
            signed_head=sign_head(
                key,
                dataset_id=record.id,
                sequence_number=forged.sequence_number,
                block_hash=forged.hash,
                time=last.system_time,
            ),
            new_dataset=NewDataset(
                name=record.name,
                kind=record.kind,
                origin=Origin.PULLED,
                created_at=last.system_time,
                origin_url=record.origin_url,
                pinned_key=record.pinned_key,
            ),
            acceptance=Acceptance(
                head=Head(forged.sequence_number, forged.hash),
                trust=Trust.UNSIGNED,
                source_url=None,
                accepted_at=last.system_time,
                grounds=Grounds(
                    first=0, last=forged.sequence_number, policy="unsigned", rule="forged", reason="nobody asked"
                ),
            ),
        )
    )


def change_figure(table: pa.Table, country: str, day: str, fewer: int) -> pa.Table:
    """Lower the deaths of one country on one day, in the row that holds the newest figure."""
    if not fewer:
        return table
    days = pc.strftime(table.column("event_time"), format="%Y-%m-%d")
    matching = pc.indices_nonzero(pc.and_(pc.equal(days, day), pc.equal(table.column("country"), country)))
    if not len(matching):
        raise SystemExit(f"the newest slice has no row for {country} on {day}")
    position = matching[-1].as_py()
    deaths = table.column("deaths").to_pylist()
    deaths[position] -= fewer
    index = table.schema.get_field_index("deaths")
    return table.set_column(index, table.schema.field(index), pa.array(deaths, table.schema.field(index).type))


def state_after(blocks: list[NewBlock]) -> ChainState:
    """Fold the chain rules over the blocks."""
    state: ChainState | None = None
    for block in blocks:
        state, _ = append(state, decode_block(block.raw, expected_hash=None), strictness=Strictness.FOREIGN)
    assert state is not None
    return state


def objects_of(blocks: list[NewBlock]) -> list[Multihash]:
    """List the slices that the blocks name."""
    decoded: list[Block] = [decode_block(block.raw, expected_hash=None) for block in blocks]
    return [
        block.event.new_data.physical_hash
        for block in decoded
        if isinstance(block.event, ExecuteTransform) and block.event.new_data
    ]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Change one figure and rebuild everything that would give it away.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--country", default="")
    parser.add_argument("--day", default="")
    parser.add_argument("--deaths-minus", type=int, default=0)
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument("--own-key", action="store_true")
    whose.add_argument("--stolen-key", type=Path, metavar="HOME")
    return parser.parse_args()


if __name__ == "__main__":
    main()
