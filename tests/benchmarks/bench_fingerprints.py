"""What fingerprints cost: of one large version, in bytes, and to read the history of many.

    bench_fingerprints.py [ROWS] [VERSIONS]    default: 10,000,000 and 1,000

Ingests ROWS of five columns from a CSV file into a new home, then describes the version in the sandbox, and prints
both in seconds and their ratio, and the bytes of the fingerprint of each column, and of 20 such columns. Then
makes one history of VERSIONS fingerprints of 20 columns, keeps it, and prints how long it takes to read it and to
compare each version with the one before by all measures.

Goals: 10 % of the ingest, 20 kB for 20 columns, 1,000 versions in a second.
"""

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_fingerprints.documents import Fingerprint, RowsFingerprint
from odf_fingerprints.drift import jensen_shannon, kolmogorov_smirnov, population_stability_index
from odf_fingerprints.folding import fold_rows
from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint, KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.reading import fold_versions, read_fingerprints
from odf_fingerprints.signing import sign_fingerprint
from odf_node.composition import open_node
from odf_node.home_folder import HomeFolder
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.multihash import Multihash
from support.command_line import run_command

COLUMNS = 20
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: large
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        ddlSchema: ["event_time DATE", "id BIGINT", "name STRING", "x DOUBLE", "y BIGINT"]
      merge: {kind: Append}
"""


def write_source(path: Path, rows: int) -> None:
    places = np.arange(rows)
    table = pa.table(
        {
            "event_time": pa.array((18_262 + places * 7 % 336).astype(np.int32), pa.date32()),
            "id": places,
            "name": pa.array([f"name {each}" for each in range(1_000)]).take(pa.array(places % 1_000)),
            "x": np.random.default_rng(1).normal(size=rows).round(6),
            "y": places * 13 % 977,
        }
    )
    pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))


def measure_large(folder: Path, rows: int) -> Fingerprint:
    home, source, manifest = folder / "home", folder / "rows.csv", folder / "large.yaml"
    manifest.write_text(MANIFEST)
    write_source(source, rows)
    words = (("add", manifest), ("ingest", "large", source))
    clock = time.perf_counter()
    for each in words:
        done = run_command(home, *each, around=["env"])
        assert done.returncode == 0, done.stderr
    ingest_s = time.perf_counter() - clock
    node = open_node(home)
    (record,) = node.store.list_datasets()
    clock = time.perf_counter()
    with FingerprintMaker(node.home) as maker:
        maker.make(record)
    own_s = time.perf_counter() - clock
    (version,) = read_fingerprints(node.home, record)
    node.close()
    print(f"ingest of {rows:,} rows           {ingest_s:8.2f} s")
    print(f"its fingerprint                   {own_s:8.2f} s")
    print(f"ratio                             {own_s / ingest_s:8.2f}")
    for column in version.added.columns:
        print(f"    {column.name:<12} {len(msgspec.json.encode(column)):6} bytes")
    return version.fingerprint


def measure_history(folder: Path, first: Fingerprint, versions: int) -> None:
    columns = first.added.columns
    wide = tuple(
        msgspec.structs.replace(columns[place % len(columns)], name=f"column{place}") for place in range(COLUMNS)
    )
    added = msgspec.structs.replace(first.added, columns=wide)
    current, kept = RowsFingerprint(), list[KeptFingerprint]()
    for number in range(versions):
        block = Multihash.of_sha3_256(str(number).encode())
        stated = msgspec.structs.replace(first, sequence=number, block=str(block), added=added)
        current = fold_rows(current, stated.added, stated.removed)
        document, after = sign_fingerprint(bytes(32), stated), encode_canonical(current)
        kept.append(KeptFingerprint(number, block, FingerprintOrigin.OWN, document, after))
    print(f"fingerprint of {COLUMNS} columns         {len(kept[0].document):8,} bytes")
    store = KeptFingerprints(HomeFolder(folder / "history"))
    store.put(first.dataset_id, kept)
    clock = time.process_time()
    found = fold_versions(store.read(first.dataset_id))
    read_s, clock = time.process_time() - clock, time.process_time()
    for before, version in pairwise(found):
        for one, other in zip(before.added.columns, version.added.columns, strict=True):
            first_bins, other_bins = one.histogram, other.histogram
            for measure in (population_stability_index, jensen_shannon, kolmogorov_smirnov):
                measure(first_bins, other_bins)
    judged_s = time.process_time() - clock
    print(f"{versions:,} versions read, signatures checked {read_s:8.2f} s of processor")
    print(f"{versions:,} versions compared, {3 * COLUMNS} measures each {judged_s:8.2f} s of processor")


def main() -> None:
    rows, versions = (int(each) for each in [*sys.argv[1:], *("10000000", "1000")[len(sys.argv) - 1 :]])
    with tempfile.TemporaryDirectory() as folder:
        measure_history(Path(folder), measure_large(Path(folder), rows), versions)


if __name__ == "__main__":
    main()
