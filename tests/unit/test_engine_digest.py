"""Clause ENGINE-10: the digest names content, not places; ENGINE-13: archives are used only if whole."""

import os
import shutil
from pathlib import Path

import pytest

from odf_spark.class_data import find_class_data
from odf_spark.runtime import SparkRuntime, class_data_key, engine_digest, find_runtime, iter_engine_files

FILES = {
    "java/lib/modules": b"java",
    "site/pyspark/jars/a.jar": b"jar a",
    "site/pyspark/jars/b.jar": b"jar b",
    "site/pyspark/sql/session.py": b"pass",
    "site/numpy/core.so": b"numpy",
    "library/json/decoder.py": b"json",
    "ours/odf_spark/worker.py": b"OPERATIONS = ['odf_spark.query']\ndef f(): import odf_protocol.did",
    "ours/odf_spark/query.py": b"import odf_spark.plan\ndef f(): import odf_spark.gate.rules",
    "ours/odf_spark/plan.py": b"pass",
    "ours/odf_spark/gate/rules.py": b"pass",
    "ours/odf_protocol/__init__.py": b"",
    "ours/odf_protocol/did.py": b"from odf_protocol import errors",
    "ours/odf_protocol/errors.py": b"if TYPE_CHECKING:\n    import odf_protocol.block",
}
HOST_SIDE = ("ours/odf_spark/runtime.py", "ours/odf_engines/confined/process.py", "ours/odf_protocol/block.py")


def install(folder: Path) -> SparkRuntime:
    for name, content in {**FILES, **dict.fromkeys(HOST_SIDE, b"host side")}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return SparkRuntime(
        java_home=folder / "java",
        python=folder / "python",
        python_library=folder / "library",
        packages=(("numpy", folder / "site/numpy"), ("pyspark", folder / "site/pyspark")),
        ours=tuple((name, folder / "ours" / name) for name in ("odf_engines", "odf_protocol", "odf_spark")),
    )


@pytest.fixture
def runtime(tmp_path):
    return install(tmp_path / "here")


def test_two_installations_have_one_digest(runtime, tmp_path):
    other = install(tmp_path / "elsewhere" / "deeper")
    for path in (tmp_path / "elsewhere").rglob("*"):
        os.utime(path, (1, 1))
    assert engine_digest(runtime, tmp_path / "cache") == engine_digest(other, tmp_path / "other cache")


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_counts_changes_it(runtime, tmp_path, name):
    before = engine_digest(runtime, tmp_path / "cache")
    path = tmp_path / "here" / name
    path.write_bytes(path.read_bytes() + b"\n0")
    assert engine_digest(runtime, tmp_path / "cache") != before


@pytest.mark.parametrize(
    "name",
    [
        "library/test/test_json.py",
        "library/site-packages/json.py",
        "library/_sysconfigdata__linux.py",
        "library/lib-dynload/_json.so",
        "site/numpy/__pycache__/core.cpython-311.pyc",
        "site/numpy/tests/test_core.py",
        "site/pyspark/bin/spark-submit",
        "site/pyspark/sql/session.pyi",
        "java/legal/LICENSE",
        "java/lib/server/classes.jsa",
        "ours/odf_engines/registry.py",
        *HOST_SIDE,
    ],
)
def test_what_cannot_change_a_result_does_not(runtime, tmp_path, name):
    before = engine_digest(runtime, tmp_path / "cache")
    path = tmp_path / "here" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"anything")
    assert engine_digest(runtime, tmp_path / "cache") == before


def test_same_content_at_another_place_is_another_engine(runtime, tmp_path):
    before = engine_digest(runtime, tmp_path / "cache")
    jars = tmp_path / "here/site/pyspark/jars"
    shutil.move(jars / "a.jar", jars / "c.jar")
    assert engine_digest(runtime, tmp_path / "cache") != before


def test_change_that_keeps_size_and_modification_time_is_seen(runtime, tmp_path):
    before = engine_digest(runtime, tmp_path / "cache")
    path = tmp_path / "here/site/pyspark/jars/a.jar"
    found = path.stat()
    path.write_bytes(b"jar x")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert engine_digest(runtime, tmp_path / "cache") != before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"x": 1}'], ids=["empty", "cut", "list", "foreign"])
def test_broken_cache_costs_time_only(runtime, tmp_path, content):
    before = engine_digest(runtime, tmp_path / "cache")
    for store in (tmp_path / "cache").iterdir():
        store.write_bytes(content)
    assert engine_digest(runtime, tmp_path / "cache") == before


def test_cache_that_cannot_be_written_costs_time_only(runtime, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert engine_digest(runtime, tmp_path / "file") == engine_digest(runtime, tmp_path / "cache")


def test_installed_engine_has_its_parts_in_the_digest():
    places = dict(iter_engine_files(find_runtime()))
    for place in (
        "library/json/decoder.py",
        "java/lib/modules",
        "java/lib/tzdb.dat",
        "odf/odf_spark/changelog.py",
        "odf/odf_spark/launch.py",
        "python/pyarrow/parquet/core.py",
        "spark/spark-sql_2.13-4.3.0.jar",
    ):
        assert place in places
    assert "odf/odf_engines/host/session.py" not in places
    assert "odf/odf_protocol/chain/verify.py" not in places


def contents(runtime, cache):
    """What a digest is made of: places, and files of the installation or the bytes of our own."""
    found = dict(iter_engine_files(runtime, cache))
    return {place: path.read_bytes() if place.startswith("odf/") else path.resolve() for place, path in found.items()}


def test_same_files_under_another_path_are_the_same_engine(tmp_path):
    """The real engine under a second path: links to its folders, so that nothing depends on where it lies."""
    runtime = find_runtime()
    root = tmp_path / "somewhere" / "else"
    root.mkdir(parents=True)
    for number, folder in enumerate([runtime.java_home, runtime.python_library, *dict(runtime.packages).values()]):
        (root / str(number)).symlink_to(folder)
    for name, folder in runtime.ours:
        shutil.copytree(folder, root / "ours" / name)
    packages = tuple((name, root / str(number + 2)) for number, (name, _) in enumerate(runtime.packages))
    there = SparkRuntime(
        java_home=root / "0",
        python=runtime.python,
        python_library=root / "1",
        packages=packages,
        ours=tuple((name, root / "ours" / name) for name, _ in runtime.ours),
    )
    here = contents(runtime, tmp_path / "cache")
    assert contents(there, tmp_path / "other cache") == here
    worker = root / "ours" / "odf_spark" / "changelog.py"
    worker.write_bytes(worker.read_bytes() + b"# changed\n")
    assert contents(there, tmp_path / "other cache") != here


def test_archive_key_follows_java_and_spark_only(runtime, tmp_path):
    before = class_data_key(runtime, tmp_path / "cache")
    (tmp_path / "here/ours/odf_spark/query.py").write_bytes(b"changed")
    assert class_data_key(runtime, tmp_path / "cache") == before
    (tmp_path / "here/site/pyspark/jars/a.jar").write_bytes(b"changed")
    assert class_data_key(runtime, tmp_path / "cache") != before


def test_archive_of_another_installation_with_the_same_files_is_not_used(runtime, tmp_path):
    before = class_data_key(runtime, tmp_path / "cache")
    engine_before = engine_digest(runtime, tmp_path / "cache")
    jar = next(runtime.jars.glob("*.jar"))
    os.utime(jar, (1, 1))  # Java takes no archive that was made with a file of another time
    assert class_data_key(runtime, tmp_path / "cache") != before
    assert engine_digest(runtime, tmp_path / "cache") == engine_before


@pytest.mark.parametrize(
    ("content", "is_found"),
    [(None, False), (b"", False), (b"something else", False), (bytes.fromhex("a2abf00b") + b"x", False)],
    ids=["absent", "empty", "foreign", "other-magic"],
)
def test_archive_is_used_only_if_it_is_one(runtime, tmp_path, content, is_found):
    cache = tmp_path / "cache"
    path = cache / "class-data" / f"{class_data_key(runtime, cache)}.jsa"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_bytes(content)
    assert (find_class_data(runtime, cache) is not None) is is_found
