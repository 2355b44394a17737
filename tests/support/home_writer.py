"""Write to a home and report how it went as one JSON line: run as a program, in a process with too little of something.

``python home_writer.py FOLDER STEP...`` with steps ``base`` (create a dataset), ``read`` (only read), ``big-object``
or ``big-chain`` (grow it by a megabyte of object or blocks), ``key``, ``limit=BYTES`` (no file may grow larger).
"""

import json
import resource
import sys
from contextlib import closing
from pathlib import Path

from odf_node.adapters.key_files import KeyFiles
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.commit_point import commit_with_objects
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeReadOnlyError
from odf_node.store import MetadataStore
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from support.store_values import NOON, blocks, creation, growth

MEGABYTE = 1_000_000
BASE = creation(objects=(Multihash.of_sha3_256(b"base slice"),))


def run_step(home: HomeFolder, step: str) -> None:
    """Do one step as services do."""
    objects, metadata = ObjectFolder(home), MetadataStore(home)
    with closing(metadata):
        match step.split("="):
            case ["base"]:
                _commit(objects, metadata, BASE, b"base slice")
            case ["read"]:
                assert [b.sequence_number for b in metadata.iter_blocks(BASE.dataset_id)] == [0]
            case ["big-object"]:
                payload = b"x" * MEGABYTE
                _commit(objects, metadata, growth(BASE, objects=(Multihash.of_sha3_256(payload),)), payload)
            case ["big-chain"]:
                payload = b"small slice"
                chain = blocks(1, 100, size_bytes=MEGABYTE // 100)
                commit = growth(BASE, blocks=chain, objects=(Multihash.of_sha3_256(payload),))
                _commit(objects, metadata, commit, payload)
            case ["key"]:
                KeyFiles(home).get_or_create_node_key()
            case ["limit", size]:
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
            case _:
                raise ValueError(step)


def _commit(objects: ObjectFolder, metadata: MetadataStore, commit: object, payload: bytes) -> None:
    with objects.writing(), objects.stage() as staged:
        staged.write(payload)
        commit_with_objects(metadata, objects, commit, {Multihash.of_sha3_256(payload): staged})  # type: ignore[arg-type]


def describe(home: HomeFolder) -> dict[str, object]:
    """Say what is in the home after all was done."""
    objects = ObjectFolder(home)
    with closing(MetadataStore(home)) as metadata:
        referenced = metadata.list_referenced_objects()
        try:
            swept = objects.sweep(metadata.list_referenced_objects, now=NOON).ran
        except HomeReadOnlyError:
            swept = False
        return {
            "heads": [record.head.sequence_number for record in metadata.list_datasets()],
            "objects_are_the_referenced_ones": set(objects.iter_hashes()) == referenced,
            "staged": [p.name for p in home.staging.iterdir() if p != home.downloads] if home.staging.exists() else [],
            "swept": swept,
            "exists": home.path.exists(),
        }


def main() -> None:
    """Run the steps; a step that fails with an error of ours is reported, and the next one is run."""
    home, errors = HomeFolder(Path(sys.argv[1])), []
    for step in sys.argv[2:]:
        try:
            run_step(home, step)
        except OdfError as error:
            errors.append([step, type(error).__name__, str(error)])
    print(json.dumps({"errors": errors, **describe(home)}))


if __name__ == "__main__":
    main()
