"""Datasets as files, in every place that holds them: folder, archive, and a bucket of a real server."""

import asyncio
import io
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from odf_node.acceptance.offers import AcceptanceReport
from odf_node.adapters.bucket_client import parse_bucket_url
from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.layout_archive import LayoutArchive
from odf_node.adapters.layout_bucket import LayoutBucket
from odf_node.adapters.layout_places import find_layout_target
from odf_node.byte_rate import ByteRate
from odf_node.composition import Node
from odf_node.datasets.exporting import ExportReport
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_node.home_folder import HomeFolder
from odf_node.ports.layouts import HEAD_PATH, LayoutTarget
from odf_node.ports.peer_errors import PeerNotFoundError, PeerUnavailableError
from odf_node.ports.progress import Silence
from odf_node.records.errors import HomeFullError
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.policy import Policy, Trust
from support.bucket_server import CREDENTIALS, bucket_server, make_bucket
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.signing import OTHER_KEY
from support.turned_clock import TurnedClock

KINDS = ["folder", "archive", "bucket"]
FIRST_SLICE = 2
RATE = 10_000


@dataclass(frozen=True)
class Place:
    """An address of each kind, and how to look at what is there without our code's help."""

    kind: str
    address: str
    folder: Path

    def target(self) -> LayoutTarget:
        found = find_layout_target(self.address, "cities")
        assert found is not None
        return found

    def read(self, path: str) -> bytes:
        if self.kind == "archive":
            opened = LayoutArchive(Path(self.address)).open(path, "file")
        else:
            opened = self.target().open(path, "file")
        with opened.file as file:
            return file.read()

    def write(self, path: str, content: bytes) -> None:
        """Replace a file behind the back of whoever wrote the place."""
        if self.kind != "archive":
            with self.target() as target:
                target.write(path, io.BytesIO(content), len(content))
            return
        changed = Path(self.address).with_suffix(".changed")
        with tarfile.open(self.address) as old, tarfile.open(changed, "w:") as new:
            for member in old.getmembers():
                body = content if member.name == f"cities/{path}" else old.extractfile(member).read()  # type: ignore[union-attr]
                member.size = len(body)
                new.addfile(member, io.BytesIO(body))
        changed.replace(self.address)


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bucket_server(tmp_path_factory.mktemp("bucket") / "server.log") as endpoint:
        yield endpoint


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    match request.param:
        case "folder":
            address = str(tmp_path / "place" / "cities")
        case "archive":
            address = str(tmp_path / "cities.tar")
        case _:
            make_bucket(bucket, tmp_path.name.replace("_", "-").lower())
            address = f"s3+http://{bucket}/{tmp_path.name.replace('_', '-').lower()}/some/cities"
    return Place(request.param, address, tmp_path)


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path)


@pytest.fixture
def publisher(tmp_path: Path) -> PublisherHome:
    return PublisherHome(Judge.create(tmp_path / "publisher"))


def export(publisher: PublisherHome, chain: PeerChain, target: LayoutTarget) -> ExportReport:
    publisher.keep(chain)
    return export_held(publisher, chain, target)


def export_held(publisher: PublisherHome, chain: PeerChain, target: LayoutTarget) -> ExportReport:
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node:
        record = node.store.find_dataset(chain.id)
        assert record is not None
        return asyncio.run(node.exporting.export(record, target, Silence()))


def take(home: Path, place: Place, *, policy: Policy | None = None, rate: ByteRate | None = None) -> AcceptanceReport:
    with closing(Node(HomeFolder(home), FixedClock(NOW))) as node:
        if rate is not None:
            node.__dict__["rate"] = rate
        url = place.address if "://" in place.address else Path(place.address).as_uri()
        report = asyncio.run(node.pulling.pull(PullTarget("it", None, url), PullOptions(policy=policy), Silence()))
        assert isinstance(report, AcceptanceReport)
        for needed in node.store.list_referenced_objects():
            node.objects.check(needed)
        return report


def reject(home: Path, place: Place, error: type[OdfError] = ProposalRejectedError) -> OdfError:
    with pytest.raises(error) as caught:
        take(home, place)
    with closing(Node(HomeFolder(home), FixedClock(NOW))) as node:
        assert node.store.list_datasets() == ()
        assert list(node.objects.iter_hashes()) == []
    return caught.value


def test_what_is_exported_is_imported_elsewhere_with_its_signatures(
    place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    written = export(publisher, chain, place.target())
    report = take(tmp_path / "reader", place)

    assert (written.new_blocks, written.written_objects) == (4, 2)
    assert report.record.head == chain.head
    assert (report.record.name, report.record.trust) == ("cities", Trust.SIGNED)
    assert take(tmp_path / "reader", place).new_blocks == 0


def test_head_is_the_bare_text_of_the_hash(place: Place, publisher: PublisherHome, chain: PeerChain) -> None:
    export(publisher, chain, place.target())
    assert place.read(HEAD_PATH) == str(chain.head.hash).encode()


def test_second_export_writes_what_is_new(
    place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    early = chain.up_to(FIRST_SLICE)
    early.files.pop(list(chain.files)[-1])
    export(publisher, early, place.target())
    take(tmp_path / "reader", place)

    report = export(publisher, chain, place.target())

    # An archive is always made anew.
    assert report.new_blocks == (4 if place.kind == "archive" else 1)
    assert report.written_objects == (2 if place.kind == "archive" else 1)
    assert take(tmp_path / "reader", place).new_blocks == 1
    if place.kind != "archive":
        assert export_held(publisher, chain, place.target()).new_blocks == 0


def test_changed_slice_is_rejected(place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path) -> None:
    export(publisher, chain, place.target())
    name = f"data/{next(iter(chain.files))}"
    content = bytearray(place.read(name))
    content[len(content) // 2] ^= 1
    place.write(name, bytes(content))

    assert "EX-12 object-hash" in str(reject(tmp_path / "reader", place).args) + reject(tmp_path / "reader", place).rule  # type: ignore[attr-defined]


def test_changed_block_is_rejected(place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path) -> None:
    export(publisher, chain, place.target())
    name = f"blocks/{chain.blocks[1].hash}"
    place.write(name, chain.blocks[0].raw)

    reject(tmp_path / "reader", place, OdfError)


def test_signature_of_another_key_is_rejected(
    place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    export(publisher, chain, place.target())
    forged = root_chain(tmp_path, key=OTHER_KEY)
    place.write(f"signatures/{chain.blocks[1].hash}", forged.signatures[1] or b"")

    reject(tmp_path / "reader", place)


@pytest.mark.parametrize("place", ["folder", "bucket"], indirect=True)
def test_place_with_another_history_is_left_as_it_is(place: Place, publisher: PublisherHome, chain: PeerChain) -> None:
    export(publisher, chain, place.target())
    other = PublisherHome(Judge.create(place.folder / "other"))
    parted = chain.up_to(FIRST_SLICE)
    parted.add_rows([("Paris", 1)])
    before = place.read(HEAD_PATH)

    with pytest.raises(RejectedError, match="LAYOUT-5"):
        export(other, parted, place.target())

    assert place.read(HEAD_PATH) == before
    with pytest.raises(PeerNotFoundError):
        place.read(f"blocks/{parted.head.hash}")


@pytest.mark.parametrize("place", ["folder", "bucket"], indirect=True)
def test_export_that_broke_shows_nothing_and_goes_on(
    place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    publisher.keep(chain)
    for allowed in (1, 3, 6):
        with pytest.raises(HomeFullError):
            export_held(publisher, chain, _Breaking(place.target(), allowed))
        with pytest.raises(PeerNotFoundError):
            place.read(HEAD_PATH)
    report = export_held(publisher, chain, place.target())
    assert report.written_objects == 0
    assert take(tmp_path / "reader", place).new_blocks == 4


def test_archive_that_broke_leaves_no_file(publisher: PublisherHome, chain: PeerChain, tmp_path: Path) -> None:
    publisher.keep(chain)
    target = find_layout_target(str(tmp_path / "cities.tar"), "cities")
    assert target is not None
    with pytest.raises(HomeFullError):
        export_held(publisher, chain, _Breaking(target, 3))
    assert not [path.name for path in tmp_path.iterdir() if "tar" in path.name or "pending" in path.name]


def test_equal_datasets_make_equal_archives(publisher: PublisherHome, chain: PeerChain, tmp_path: Path) -> None:
    publisher.keep(chain)
    for name in ("first", "second"):
        target = find_layout_target(str(tmp_path / name / "cities.tar"), "cities")
        (tmp_path / name).mkdir()
        assert target is not None
        export_held(publisher, chain, target)
    first, second = ((tmp_path / name / "cities.tar").read_bytes() for name in ("first", "second"))
    assert first == second


def test_damaged_object_is_not_exported(place: Place, publisher: PublisherHome, chain: PeerChain) -> None:
    publisher.keep(chain)
    damaged = publisher.judge.objects.get_path(next(iter(chain.files)))
    damaged.write_bytes(b"x" + damaged.read_bytes()[1:])
    with pytest.raises(OdfError, match=str(next(iter(chain.files)))):
        export_held(publisher, chain, place.target())
    with pytest.raises((PeerNotFoundError, PeerUnavailableError)):
        place.read(HEAD_PATH)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:700])


def _empty(path: Path) -> None:
    with tarfile.open(path, "w:"):
        pass


def _two(path: Path) -> None:
    with tarfile.open(path, "w:") as archive:
        for name in ("a", "b"):
            member = tarfile.TarInfo(f"{name}/refs/head")
            archive.addfile(member, io.BytesIO())


def _link(path: Path) -> None:
    with tarfile.open(path, "w:") as archive:
        member = tarfile.TarInfo("cities/refs/head")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)


@pytest.mark.parametrize("spoil", [_truncate, _empty, _two, _link])
def test_archive_that_is_none_is_said_to_be_none(
    spoil: Callable[[Path], None], publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    place = Place("archive", str(tmp_path / "cities.tar"), tmp_path)
    export(publisher, chain, place.target())
    spoil(Path(place.address))
    reject(tmp_path / "reader", place, MalformedError)


def test_half_an_object_of_an_earlier_attempt_is_gone_on_from(
    place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    export(publisher, chain, place.target())
    home = HomeFolder(tmp_path / "reader")
    first, second = chain.files
    with closing(Node(home, FixedClock(NOW))) as node, node.objects.writing():
        for wanted, kept in ((first, chain.files[first][:50]), (second, b"wrong")):
            with node.objects.resume(wanted) as staged:
                staged.write(kept)
    assert take(home.path, place).new_blocks == 4


@pytest.mark.parametrize(
    ("address", "bucket_name", "prefix", "endpoint"),
    [
        ("s3://data/some/cities", "data", "some/cities", None),
        ("s3://data/cities/", "data", "cities", None),
        ("s3+http://127.0.0.1:9000/data/cities", "data", "cities", "127.0.0.1:9000"),
        ("s3+https://s3.example.org/data/a%20b/cities", "data", "a b/cities", "s3.example.org"),
    ],
)
def test_bucket_addresses_are_read(address: str, bucket_name: str, prefix: str, endpoint: str | None) -> None:
    found = parse_bucket_url(address)
    assert (found.bucket, found.prefix, found.endpoint) == (bucket_name, prefix, endpoint)
    assert found.is_encrypted == (not address.startswith("s3+http:"))


@pytest.mark.parametrize(
    "address",
    ["s3://data", "s3://", "s3+http://host:9000/data", "s3://data/../x", "s3://key:secret@data/x", "s3+http://h:x/b/c"],
)
def test_address_without_a_place_in_a_bucket_is_malformed(address: str) -> None:
    with pytest.raises(MalformedError):
        parse_bucket_url(address)


def test_missing_bucket_and_missing_server_are_said_in_words(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PeerNotFoundError, match="no-such-bucket"):
        LayoutBucket(parse_bucket_url(f"s3+http://{bucket}/no-such-bucket/cities")).open(HEAD_PATH, "dataset")
    with pytest.raises(PeerNotFoundError):
        LayoutBucket(parse_bucket_url(f"s3+http://{bucket}/no-such-bucket/cities")).write("x", io.BytesIO(b"1"), 1)
    with pytest.raises(PeerUnavailableError, match=r"127\.0\.0\.1:9"):
        LayoutBucket(parse_bucket_url("s3+http://127.0.0.1:9/data/cities")).open(HEAD_PATH, "dataset")


class _Breaking:
    """A place that has no room after some files."""

    def __init__(self, target: LayoutTarget, allowed: int) -> None:
        self._target, self._left = target, allowed

    def __getattr__(self, name: str) -> object:
        return getattr(self._target, name)

    def write(self, path: str, content: BinaryIO, size_bytes: int) -> None:
        if not self._left:
            raise HomeFullError(Path(path), "no room")
        self._left -= 1
        self._target.write(path, content, size_bytes)

    def __enter__(self) -> "_Breaking":
        self._target.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._target.__exit__(*exception)  # type: ignore[arg-type]


def test_files_are_written_and_read_no_faster_than_the_rate_allows(
    place: Place, publisher: PublisherHome, chain: PeerChain, tmp_path: Path
) -> None:
    chain.add_rows([(f"{number:060}", number) for number in range(500)])
    publisher.keep(chain)
    moved_bytes = sum(len(content) for content in (*chain.files.values(), *(block.raw for block in chain.blocks)))
    min_s = moved_bytes / RATE - 0.6
    with closing(Node(publisher.judge.home, FixedClock(NOW))) as node:
        writing = TurnedClock()
        node.__dict__["rate"] = writing.rate(RATE)
        (record,) = node.store.list_datasets()
        asyncio.run(node.exporting.export(record, place.target(), Silence()))
    assert writing.passed_s > min_s
    reading = TurnedClock()
    report = take(tmp_path / "reader", place, rate=reading.rate(RATE))
    assert report.record.head == chain.head
    assert reading.passed_s > min_s
