"""Class-data archives: what Java would compute anew at every start, kept in one file per machine.

Made in one run of training, in the sandbox: a worker answers small requests while Java lists the classes it loads; from
the list Java makes the archive. At the end of the run itself it could only add to an archive that its runtime had, and
the one in the wheel has none. The archive is a picture of memory that Java trusts, so it is only ever made by us, from
a query of ours, and appears in the cache folder at once and whole, under a name that says what it was made for.

Archives stand on a shelf of the machine's cache, each under a name that says what it was made for. Several processes
may want one at the same time; all but one wait. Nothing on a shelf is needed: it can be deleted at any time.

It changes how fast an engine starts and never a result, so it is no part of the digest.

Source: clause ENGINE-13 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits, QueryRequest, QueryTable, TransformInput, TransformRequest
from odf_engines.errors import EngineError, EngineFailureError
from odf_engines.host.outputs import OutputFolder
from odf_engines.host.runtime import python_command
from odf_engines.host.session import HostSession
from odf_protocol.events import DataField, DataSchema, DataTypeInt64, DataTypeString, OffsetInterval, TransformSql
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from odf_spark.launch import SHORT_LIVED
from odf_spark.runtime import SparkRuntime, class_data_key, spark_guest

_MAX_KEPT = 8  # guess: so many checkouts one user works in at a time; archives of them all take about a gigabyte


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """One folder of such files.

    Attributes:
        folder: Made if need be.
        suffix: How their names end.
    """

    folder: Path
    suffix: str

    def find(self, name: str, *, is_good: Callable[[Path], bool]) -> Path | None:
        """Return a good thing if there is one, and count it as used now."""
        path = self._path(name)
        if not is_good(path):
            return None
        with contextlib.suppress(OSError):  # it may go meanwhile, and belong to somebody else
            os.utime(path)
        return path

    def make(self, name: str, make: Callable[[Path], Path], *, is_good: Callable[[Path], bool]) -> Path:
        """Return a good thing, making it if need be; those that were used least of late go.

        Args:
            name: Says what it is made for.
            make: Makes it somewhere in the folder it is given, and returns where; the folder is removed afterwards.
            is_good: Whether what stands at a path, if anything does, is whole and up to date.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked(name):
            if (found := self.find(name, is_good=is_good)) is not None:
                return found
            path = self._path(name)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".making-") as folder:
                make(Path(folder)).replace(path)
            self._forget()
        return path

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{self.suffix}"

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self.folder / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _forget(self) -> None:
        for old in sorted(self._iter_kept(), key=_used_ns, reverse=True)[_MAX_KEPT:]:
            old.unlink(missing_ok=True)

    def _iter_kept(self) -> Iterator[Path]:
        """Yield what stands here, without what is being made and without locks."""
        for path in self.folder.iterdir():
            if not path.name.startswith(".") and path.suffix == self.suffix:
                yield path


def _used_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0  # it went meanwhile


_LIMITS = Limits(memory_bytes=2 * 1024**3, wall_s=300.0, output_bytes=1024**3)  # guess: takes 30 s and 200 MB
_CLASS_LIST = "classes.txt"
_MAGIC = (0xF00BABA2).to_bytes(4, "little")  # first bytes of a static archive: cds.h of OpenJDK 21

_QUERY = """
SELECT event_time, `key`, upper(`text`) AS `text`, CAST(`key` AS DECIMAL(10, 2)) AS `amount`,
       date_trunc('DAY', event_time) AS `day`, CASE WHEN `key` > 1 THEN 'many' ELSE 'one' END AS `how_many`
FROM `rows` WHERE `key` >= 0 AND `text` IS NOT NULL AND `text` LIKE 'a%'
"""


def find_class_data(runtime: SparkRuntime, cache: Path) -> Path | None:
    """Return the archive for this engine if there is a whole one; hashes nothing that is not hashed already."""
    return _engine_files(cache).find(class_data_key(runtime, cache), is_good=_is_archive)


def make_class_data(runtime: SparkRuntime, cache: Path) -> Path:
    """Return the archive, making it if need be; processes that want it at the same time make it once.

    Raises:
        SandboxUnavailableError, EngineError: It cannot be made; the engine starts without one, only slower.
    """
    return _engine_files(cache).make(
        class_data_key(runtime, cache), lambda folder: _make(runtime, folder), is_good=_is_archive
    )


def _engine_files(cache: Path) -> CacheFolder:
    return CacheFolder(cache / "class-data", ".jsa")


def _is_archive(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _make(runtime: SparkRuntime, folder: Path) -> Path:
    done = folder / "done"
    done.mkdir()
    options = [*SHORT_LIVED, "-Xshare:off", f"-XX:DumpLoadedClassList=/exchange/out/{_CLASS_LIST}"]
    guest = spark_guest(runtime, cores=1, java_options=options)
    with HostSession(guest, folder, _LIMITS) as session:
        _train(session, folder)
        session.let_process_end()
        classes = OutputFolder(session.folder / "out", done, _LIMITS).take(_CLASS_LIST)
    with HostSession(spark_guest(runtime, cores=1), folder, _LIMITS) as session:
        shutil.copyfile(classes, session.folder / "in" / _CLASS_LIST)
        options = ["-Xshare:dump", f"-XX:SharedClassListFile=/exchange/in/{_CLASS_LIST}"]
        options += ["-XX:SharedArchiveFile=/exchange/out/class-data.jsa", "-Xlog:disable"]
        program = python_command("odf_spark.launch")
        with SandboxedProcess(
            session.profile(), [*program, *options], _LIMITS, writable=[session.folder / "out"]
        ) as process:
            with contextlib.suppress(EngineFailureError):
                process.receive(1, _LIMITS.wall_s)
            log = process.log
        try:
            made = OutputFolder(session.folder / "out", done, _LIMITS).take("class-data.jsa")
        except EngineFailureError as error:
            raise EngineFailureError("Java made no class-data archive", log=log) from error
    with made.open("rb+") as file:
        os.fsync(file.fileno())
    made.chmod(0o600)
    return made


def _train(session: HostSession, folder: Path) -> None:
    """Do once what engines do most, so that Java loads the classes for it."""
    schema, vocabulary = _schema(), Vocabulary()
    rows = folder / "rows.parquet"
    _write_rows(schema, rows)
    transform = TransformSql(engine="spark", query=_QUERY)
    session.check(transform, (QueryTable(name="rows", vocabulary=vocabulary, schema=schema),))
    session.transform(
        TransformRequest(
            dataset_id="",
            transform=transform,
            vocabulary=vocabulary,
            inputs=(
                TransformInput(
                    dataset_id="", alias="rows", vocabulary=vocabulary, schema=schema, slices=(rows,),
                    offset_interval=OffsetInterval(start=0, end=2),
                ),
            ),
            system_time=Timestamp(0),
            next_offset=0,
        )
    )  # fmt: skip
    # A query is no part of the archive's purpose, only of its reach, so failing at it is no reason to do without.
    with contextlib.suppress(EngineError):
        session.query(
            QueryRequest(
                tables=(QueryTable(name="rows", vocabulary=vocabulary, schema=schema, slices=(rows,)),),
                sql="SELECT `text`, count(*) AS n, sum(`key`) AS total FROM `rows` GROUP BY `text` ORDER BY n LIMIT 5",
            )
        )


def _schema() -> DataSchema:
    own = (DataField(name="key", type=DataTypeInt64()), DataField(name="text", type=DataTypeString()))
    return DataSchema(fields=(*system_fields(Vocabulary()), *own))


def _write_rows(schema: DataSchema, path: Path) -> None:

    arrow = arrow_schema_of(schema)
    values = ([0, 1, 2], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 2, 3], ["a", "ab", "b"])
    arrays = [
        pa.array(column, pa.int64()).cast(field.type) if not pa.types.is_string(field.type) else pa.array(column)
        for column, field in zip(values, arrow, strict=True)
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=arrow), path)
