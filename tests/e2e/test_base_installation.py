"""What the wheel does without any extra, so without Spark: it serves, pulls, verifies, ingests and asks.

Source: spec/guides/installing.md; clauses ENGINE-2, ENGINE-25 and QUERY-7.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_protocol.events import DatasetKind, DataSlice, ExecuteTransform, ExecuteTransformInput, OffsetInterval, Seed
from odf_protocol.events import SetDataSchema as Columns
from odf_protocol.multihash import Multihash
from support.city_datasets import derivative_manifest
from support.installed import build_wheel, install_base, run, serving
from support.nodes import FIRST_ROWS, ROOT_MANIFEST, RanCommand
from support.offers import (
    CITIES,
    CITY_SCHEMA,
    Judge,
    PeerChain,
    PublisherHome,
    hash_of_rows,
    parquet_bytes,
    root_chain,
    select,
    slice_table,
)
from support.signing import OTHER_KEY

MISSING = "engine 'spark' is not installed (installed: arrow, datafusion); pip install 'odf-node[spark]' brings it"


@dataclass(frozen=True)
class Base:
    """The program as pip installs it, and a home."""

    python: Path
    home: Path

    def run(self, *words: str, **environment: str) -> RanCommand:
        return run(self.python.parent / "odf-node", *words, "--home", self.home, **environment)

    def must(self, *words: str, **environment: str) -> str:
        done = self.run(*words, **environment)
        assert done.code == 0, f"{words}: {done.out}{done.err}"
        return done.out

    def rejects(self, *words: str, code: int = 8, **environment: str) -> str:
        """Run what cannot be done without Spark; give the one line that says so."""
        done = self.run(*words, **environment)
        assert (done.code, done.out) == (code, ""), done.err
        (line,) = done.err.splitlines()
        return line


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_base(build_wheel(tmp_path_factory.mktemp("wheel")), tmp_path_factory.mktemp("base"))


@pytest.fixture
def base(python: Path, tmp_path: Path) -> Base:
    return Base(python, tmp_path / "home")


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "cities.csv"
    path.write_text(f"event_time,city,people\n{FIRST_ROWS}", encoding="utf-8")
    return path.as_uri()


def keep_published(folder: Path) -> Path:
    """Make a home with a root, and a derivative that somebody computed with Spark."""
    root = root_chain(folder, slices=1)
    derivative = PeerChain(folder, key=OTHER_KEY, name="spark.cities")
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    derivative.add(select("SELECT event_time, city, people FROM in0", root.id)).add(Columns(schema=CITY_SCHEMA))
    content = parquet_bytes(slice_table(CITIES, first_offset=0, at=root.blocks[-1].system_time))
    name = Multihash.of_sha3_256(content)
    derivative.files[name] = content
    last = len(CITIES) - 1
    made = DataSlice(
        logical_hash=hash_of_rows(content, folder),
        physical_hash=name,
        offset_interval=OffsetInterval(start=0, end=last),
        size=len(content),
    )
    read = ExecuteTransformInput(dataset_id=root.id, new_block_hash=root.head.hash, new_offset=last)
    derivative.add(ExecuteTransform(query_inputs=(read,), new_data=made), at=root.blocks[-1].system_time)
    judge = Judge.create(folder / "published")
    for chain in (root, derivative):
        PublisherHome(judge).keep(chain)
    return judge.home.path


def test_base_installation_serves_pulls_verifies_and_asks(base: Base, tmp_path: Path) -> None:
    with serving(base.python, keep_published(tmp_path)) as address:
        base.must("pull", f"{address}/cities")
        # What cannot be computed again is said, and taken on no other word than the operator's.
        refused = base.run("pull", f"{address}/spark.cities")
        assert refused.code == 4
        assert f"its transforms cannot be re-executed here: {MISSING}; take it knowingly" in refused.err
        assert "spark.cities" not in base.must("list")
        base.must("pull", f"{address}/spark.cities", "--policy", "integrity")
    assert "cities: valid" in base.must("verify", "cities")
    assert MISSING in base.must("verify", "spark.cities")
    assert "signed" in base.must("list")
    query_text = "SELECT city, max(people) AS most FROM cities WHERE people > 10000 GROUP BY city ORDER BY most"
    assert base.must("sql", "-o", "csv", "-c", query_text).splitlines()[1:] == ['"Oslo",717710', '"Rome",2800000']
    assert base.must("sql", "-o", "csv", "-c", 'SELECT count(*) AS n FROM "spark.cities"').splitlines()[1:] == ["3"]


def test_base_installation_ingests_and_derives_without_spark(base: Base, source: str, tmp_path: Path) -> None:
    manifest, fusion = tmp_path / "root.yaml", tmp_path / "fusion.yaml"
    manifest.write_text(ROOT_MANIFEST)
    query = "{kind: Sql, engine: datafusion, query: 'SELECT event_time, city FROM c WHERE people > 10000'}"
    fusion.write_text(derivative_manifest("fusion.cities", query))
    base.must("add", str(manifest))
    assert "3 rows added" in base.must("pull", "cities", CITIES=source)
    base.must("add", str(fusion))
    assert "2 rows derived" in base.must("pull", "fusion.cities")
    assert "1 step re-executed with an equal result" in base.must("verify", "fusion.cities")


def test_what_needs_spark_says_so_in_a_line_before_anything_is_begun(base: Base, source: str, tmp_path: Path) -> None:
    manifest, derived, prepared = tmp_path / "root.yaml", tmp_path / "derived.yaml", tmp_path / "prepared.yaml"
    manifest.write_text(ROOT_MANIFEST)
    derived.write_text(derivative_manifest("large", "{kind: Sql, engine: spark, query: 'SELECT city FROM c'}"))
    step = "preprocess: {kind: Sql, engine: spark, query: SELECT * FROM input}\n      merge:"
    prepared.write_text(ROOT_MANIFEST.replace("merge:", step).replace("name: cities", "name: prepared"))
    base.must("add", str(manifest))
    before = base.must("list", "-o", "json")

    assert base.rejects("add", str(derived)) == f"odf-node add: {MISSING}"
    assert "pip install 'odf-node[spark]' brings this one" in base.rejects("add", str(prepared), code=7)
    assert base.rejects("sql", "--engine", "spark", "-c", "SELECT 1") == f"odf-node sql: {MISSING}"

    assert base.must("list", "-o", "json") == before
    extras = base.must("doctor")
    assert "not installed: pip install 'odf-node[spark]'" in extras
    assert base.must("engine", "prepare") == ""
