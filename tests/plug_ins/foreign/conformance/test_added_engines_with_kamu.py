"""Clauses ADDED-6 to ADDED-9, ADDED-11 and FUSION-2: another implementation's real engine in our sandbox."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.contract import GradeLevel, Limits, QueryTable, TransformRequest
from odf_engines.engine import EngineSession
from odf_engines.errors import EngineFailureError, InvalidQueryError
from odf_engines.registry import get_engine
from odf_foreign.engine_folder import EngineFolder, WantedStart
from odf_node.home_folder import HomeFolder
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.engine_archives import Entry, docker_archive, folder, link, oci_archive, program, tar_of, write
from support.transforms import ORDERS, orders_input, output_rows, transform_request, transform_sql, write_orders

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

NOW = Timestamp.from_unix_ms(0)
LIMITS = Limits(memory_bytes=1024**3, wall_s=120.0)
ROWS = [(number, 0, number * 1000, number, "new", 1.5 * number) for number in range(30)]
QUERIES = {
    "map": "SELECT op, event_time, id * 2 AS twice, amount FROM orders WHERE id > 3",
    "group": "SELECT max(event_time) AS event_time, status, sum(amount) AS total FROM orders GROUP BY status",
    "window": "SELECT event_time, id, sum(id) OVER (ORDER BY event_time) AS upto FROM orders",
}


def engine_program() -> Path:
    return Path(os.environ["ODF_PEER"], "engine-datafusion")


def library_entries() -> list[Entry]:
    """The libraries that the engine loads, as a small image has them."""
    reported = subprocess.run(["ldd", engine_program()], capture_output=True, text=True, check=True).stdout
    libraries = {Path(path) for path in re.findall(r"(/\S+) \(0x", reported)}
    found = [folder("usr/"), folder("usr/lib/"), link("lib", "usr/lib"), link("lib64", "/usr/lib"), Entry("etc/issue")]
    return found + [program(f"usr/lib/{path.name}", path.read_bytes()) for path in sorted(libraries)]


def write_file(form: str, target: Path) -> Path:
    """Write the engine as a file of one form."""
    raw = engine_program().read_bytes()
    if form == "program":
        return write(target, raw)
    if form == "root":
        return write(target, tar_of([*library_entries(), program("engine", raw)]))
    layers = [tar_of(library_entries()), tar_of([Entry("etc/.wh.issue"), folder("app/"), program("app/engine", raw)])]
    start = {"Entrypoint": ["/app/engine"], "Env": ["RUST_LOG=error"], "WorkingDir": "/app"}
    if form == "docker":
        return write(target, docker_archive(layers, start))
    return write(target, oci_archive(layers, start, packing="zstd"))


@pytest.fixture(scope="module", params=["program", "root", "docker", "oci"])
def theirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineSession]:
    """Their engine, added from a file of each form."""
    place = tmp_path_factory.mktemp(request.param)
    engine_files = EngineFolder(HomeFolder(place / "home"))
    file = write_file(request.param, place / "file")
    added = engine_files.add("theirs", file, WantedStart(), now=NOW, examine=lambda _engine: None)
    file.unlink()
    assert added.form == ("program" if request.param == "program" else "root")
    assert not (place / "home/engines/theirs/rootfs/etc/issue").exists() or request.param == "root"
    with added.engine.open(place, LIMITS) as session:
        yield session


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineSession]:
    with get_engine("datafusion").open(tmp_path_factory.mktemp("ours"), LIMITS) as session:
        yield session


def step(place: Path, query: str, *, interval: tuple[int, int] | None = (5, 24)) -> TransformRequest:
    """A step over three slices, which an engine reads in the order of their hashes."""
    paths = [write_orders(place / f"{at}.parquet", ROWS[at : at + 10]) for at in (0, 10, 20)]
    hashes = tuple(Multihash.of_sha3_256(path.read_bytes()) for path in paths)
    assert list(map(str, hashes)) != sorted(map(str, hashes))
    source = replace(orders_input(paths, interval, [7_000]), dataset_id=str(DatasetId(b"\x02" * 32)), hashes=hashes)
    request = transform_request(query, source, next_offset=100)
    return replace(request, dataset_id=str(DatasetId(b"\x01" * 32)))


@pytest.mark.parametrize("name", QUERIES)
def test_their_engine_gives_the_bits_that_ours_gives(
    theirs: EngineSession, ours: EngineSession, tmp_path: Path, name: str
) -> None:
    request = step(tmp_path, QUERIES[name])
    expected, found = ours.transform(request), theirs.transform(request)
    assert found.logical_hash == expected.logical_hash
    assert found.logical_hash is not None
    assert output_rows(found) == output_rows(expected)
    assert (found.offset_interval, found.watermark) == (expected.offset_interval, expected.watermark)
    assert found.schema.names == expected.schema.names


def test_step_without_rows_gives_columns_and_watermark(theirs: EngineSession, tmp_path: Path) -> None:
    request = step(tmp_path, QUERIES["map"], interval=None)
    found = theirs.transform(replace(request, inputs=(replace(request.inputs[0], slices=(), hashes=()),)))
    assert (found.data_path, found.offset_interval) == (None, None)
    assert found.schema.names == ["offset", "op", "system_time", "event_time", "twice", "amount"]
    assert found.watermark == Timestamp.from_unix_ms(7_000)


def test_their_words_for_a_query_that_is_none(theirs: EngineSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="nothing"):
        theirs.transform(step(tmp_path, "SELECT event_time, nothing FROM orders"))
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    assert theirs.check(transform_sql(QUERIES["map"]), [table]).level is GradeLevel.PINNED
    assert theirs.check(transform_sql("SELECT nothing FROM orders"), [table]).level is GradeLevel.REJECTED


def test_file_that_is_no_slice_is_not_the_querys_fault(theirs: EngineSession, tmp_path: Path) -> None:
    request = step(tmp_path, QUERIES["map"])
    broken = write(tmp_path / "broken.parquet", b"PAR1 not parquet PAR1")
    source = replace(request.inputs[0], slices=(broken,), hashes=())
    with pytest.raises((EngineFailureError, InvalidQueryError)):
        theirs.transform(replace(request, inputs=(source,)))


def test_guide_for_authors_packs_an_engine_that_runs(tmp_path: Path) -> None:
    """The commands of spec/guides/engine-authors.md, as they stand there."""
    guide = Path(__file__).parents[4] / "spec/guides/engine-authors.md"
    (commands,) = re.findall(r"^```sh\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "my-engine").symlink_to(engine_program())
    (tmp_path / "odf-node").write_text(f'#!/bin/sh\nexec {sys.executable} -m odf_node "$@"\n')
    (tmp_path / "odf-node").chmod(0o700)
    environment = os.environ | {"ODF_NODE_HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "my-engine" in ran.stdout
    assert "starts and answers" in ran.stdout
    (added,) = EngineFolder(HomeFolder(tmp_path / "home")).list()
    with added.engine.open(tmp_path, LIMITS) as session:
        assert session.transform(step(tmp_path, QUERIES["map"])).statistics.rows_out == 20
