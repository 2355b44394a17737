"""Archives whose headers lie: a dataset in a tar file, and a zip that a source gives.

Source: clauses LAYOUT-6 and LAYOUT-9 in ``spec/extensions/layout.md``, ING-1 in ``spec/ingest.md``.
"""

import asyncio
import tarfile
import zipfile
from pathlib import Path

import pytest

from odf_node.adapters.layout_archive import LayoutArchive
from odf_node.sources.reader import LocalSourceReader
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import CompressionFormat, PrepStepDecompress

BLOCK_BYTES = 512
END = bytes(2 * BLOCK_BYTES)


def padded(raw: bytes) -> bytes:
    return raw + bytes(-len(raw) % BLOCK_BYTES)


def header(name: str, size_bytes: int, kind: bytes) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size_bytes, kind
    return member.tobuf(tarfile.USTAR_FORMAT)


def a_file(name: str, content: bytes) -> bytes:
    return header(name, len(content), tarfile.REGTYPE) + padded(content)


def saying(**words: str) -> bytes:
    """An extended header, which says something of the member after it."""
    body = b""
    for key, value in words.items():
        rest = f" {key}={value}\n".encode()
        length = len(rest) + 1
        while len(str(length)) + len(rest) != length:
            length += 1
        body += str(length).encode() + rest
    return header("x", len(body), tarfile.XHDTYPE) + padded(body)


def in_bits(name: str, size_bytes: int) -> bytes:
    """A member whose size stands in its own header, in the form that can be negative."""
    raw = bytearray(header(name, 0, tarfile.REGTYPE))
    raw[124:136] = (size_bytes % 2**96).to_bytes(12)
    raw[148:156] = b"        "
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


HEAD = a_file("cities/refs/head", b"f1620")
LYING = {
    "one-header-after-another": saying(path="a") * 3000 + HEAD + END,
    "one-long-name-after-another": (header("x", 5, tarfile.GNUTYPE_LONGNAME) + padded(b"aaaaa")) * 3000 + HEAD + END,
    "a-size-that-leads-back": HEAD + saying(size="-1536") + a_file("cities/blocks/a", b"x" * 10) + END,
    "a-size-below-nothing": in_bits("cities/refs/head", -1024) + END,
    "a-size-that-no-file-has": saying(size="9" * 30) + HEAD + END,
    "a-hole-that-is-no-map": saying(**{"GNU.sparse.map": "-1,zz"}) + HEAD + END,
}


@pytest.mark.parametrize("lie", LYING)
def test_header_that_lies_is_told_and_no_fault(tmp_path: Path, lie: str) -> None:
    archive = tmp_path / "cities.tar"
    archive.write_bytes(LYING[lie])

    with pytest.raises(MalformedError, match="expected a tar file"):
        LayoutArchive(archive)

    archive.write_bytes(HEAD + END)
    assert LayoutArchive(archive).open("refs/head", "dataset").file.read() == b"f1620"


def test_header_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    archive = tmp_path / "cities.tar"
    with archive.open("wb") as file:
        file.write(header("x", 2**32, tarfile.XHDTYPE))
        file.truncate(2**32)

    with pytest.raises(MalformedError, match="a header of 4294967296 bytes"):
        LayoutArchive(archive)


def zipped(path: Path, *entries: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def unzip(path: Path, sub_path: str | None) -> bytes:
    step = PrepStepDecompress(format=CompressionFormat.ZIP, sub_path=sub_path)
    reader = LocalSourceReader()
    return asyncio.run(reader.prepare(step, path=path, name="the zip", folder=path.parent)).path.read_bytes()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("sub_path", [None, "rows.csv"])
def test_zip_with_two_entries_of_one_name_is_rejected(tmp_path: Path, sub_path: str | None) -> None:
    packed = zipped(tmp_path / "rows.zip", ("rows.csv", b"shown"), ("rows.csv", b"taken"))

    with pytest.raises(MalformedError, match="each entry once"):
        unzip(packed, sub_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.zip"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../../rows.csv", "C:\\rows.csv", "a\nb"])
def test_name_of_a_zip_entry_is_no_path(tmp_path: Path, name: str) -> None:
    packed = zipped(tmp_path / "rows.zip", (name, b"rows"))

    assert unzip(packed, None) == b"rows"
    assert {path.parent for path in tmp_path.rglob("*")} == {tmp_path}


def test_zip_whose_directory_names_another_entry_than_lies_there_is_rejected(tmp_path: Path) -> None:
    packed = zipped(tmp_path / "rows.zip", ("rows.csv", b"rows"))
    packed.write_bytes(packed.read_bytes().replace(b"rows.csv", b"evil.csv", 1))

    with pytest.raises(MalformedError, match="zip file"):
        unzip(packed, "rows.csv")


@pytest.mark.parametrize("bit", [0x1, 0x2041], ids=["a-password", "a-password-of-the-strong-kind"])
def test_encrypted_zip_is_told(tmp_path: Path, bit: int) -> None:
    packed = zipped(tmp_path / "rows.zip", ("rows.csv", b"rows"))
    raw = bytearray(packed.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.index(mark) + place
        raw[at : at + 2] = bit.to_bytes(2, "little")
    packed.write_bytes(raw)

    with pytest.raises(UnsupportedError, match="password"):
        unzip(packed, None)
