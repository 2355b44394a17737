import asyncio
import gzip
import io
import random
import zipfile
from pathlib import Path

import pytest

from odf_node.ports.sources import Commands, SourceRejectedError, SourceTooLargeError
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import CompressionFormat, PrepStep, PrepStepDecompress, PrepStepPipe

GZIP = PrepStepDecompress(format=CompressionFormat.GZIP)
ZIP = PrepStepDecompress(format=CompressionFormat.ZIP)
ROWS = b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(20_000))
LIMITS = SourceLimits(size_bytes=10_000_000, unpack_free_bytes=1_000_000, unpack_ratio=50, command_s=240)


def _prepare(packed: bytes, folder: Path, *steps: PrepStep, commands: Commands = Commands.NONE) -> bytes:
    path = folder / "packed"
    path.write_bytes(packed)
    reader = LocalSourceReader(limits=LIMITS, commands=commands)
    try:
        result = path
        for step in steps:
            prepared = asyncio.run(reader.prepare(step, path=result, name="source.gz", folder=folder))
            if result != path:
                result.unlink()
            result = prepared.path
    except BaseException:
        assert [entry.name for entry in folder.iterdir()] == ["packed"]
        raise
    assert {entry.name for entry in folder.iterdir()} == {"packed", result.name}
    return result.read_bytes()


def _zip(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def test_output_that_was_cut_at_the_limit_is_rejected_whatever_the_command_says_of_itself(tmp_path: Path) -> None:
    step = PrepStepPipe(command=("sh", "-c", "yes; true"))
    with pytest.raises(SourceTooLargeError, match="size_bytes"):
        _prepare(ROWS, tmp_path, step, commands=Commands.SANDBOXED)


def test_steps_run_one_after_another(tmp_path: Path) -> None:
    assert _prepare(gzip.compress(_zip(("rows.csv", ROWS))), tmp_path, GZIP, ZIP) == ROWS


# Gzip


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(ROWS),
        gzip.compress(ROWS[:50_000]) + gzip.compress(ROWS[50_000:]),
        gzip.compress(ROWS) + b"\0" * 2000,
        gzip.compress(ROWS, compresslevel=0),
    ],
    ids=["one-member", "two-members", "padded", "stored"],
)
def test_gzip_is_unpacked(tmp_path: Path, packed: bytes) -> None:
    assert _prepare(packed, tmp_path, GZIP) == ROWS


def test_gzip_of_nothing_is_an_empty_file(tmp_path: Path) -> None:
    assert _prepare(gzip.compress(b""), tmp_path, GZIP) == b""


def test_gzip_larger_than_one_piece_is_unpacked(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(3_000_000)
    assert _prepare(gzip.compress(data), tmp_path, GZIP) == data


@pytest.mark.parametrize(
    ("packed", "found"),
    [
        (b"", "empty file"),
        (ROWS, "incorrect header"),
        (gzip.compress(ROWS)[:-4], "end of the file"),
        (gzip.compress(ROWS)[:3000], "end of the file"),
        (gzip.compress(ROWS)[:-8] + b"\1\2\3\4\5\6\7\0", "incorrect data check"),
        (gzip.compress(ROWS) + b"trailing", "incorrect header"),
    ],
    ids=["empty", "text", "cut-in-trailer", "cut", "checksum", "trailing-bytes"],
)
def test_damaged_gzip_is_named(tmp_path: Path, packed: bytes, found: str) -> None:
    with pytest.raises(MalformedError, match=f"gzip file at source.gz.*{found}"):
        _prepare(packed, tmp_path, GZIP)


@pytest.mark.parametrize(
    ("step", "packed", "limit"),
    [
        (GZIP, gzip.compress(bytes(9_000_000)), "unpack_ratio"),
        (ZIP, _zip(("zeros", bytes(9_000_000))), "unpack_ratio"),
        (GZIP, gzip.compress(bytes(range(256)) * 50_000, compresslevel=0), "size_bytes"),
        (ZIP, _zip(("rows", bytes(range(256)) * 50_000), method=zipfile.ZIP_STORED), "size_bytes"),
    ],
    ids=["gzip-bomb", "zip-bomb", "large-gzip", "large-zip"],
)
def test_unpacking_stops_at_the_limit(tmp_path: Path, step: PrepStep, packed: bytes, limit: str) -> None:
    with pytest.raises(SourceTooLargeError) as caught:
        _prepare(packed, tmp_path, step)
    assert caught.value.limit == limit


def test_small_file_of_much_repetition_is_no_bomb(tmp_path: Path) -> None:
    assert _prepare(gzip.compress(bytes(900_000)), tmp_path, GZIP) == bytes(900_000)


# Zip


def test_first_file_of_a_zip_is_taken(tmp_path: Path) -> None:
    assert _prepare(_zip(("folder/", b""), ("folder/rows.csv", ROWS), ("b.csv", b"b")), tmp_path, ZIP) == ROWS


def test_named_entry_of_a_zip_is_taken(tmp_path: Path) -> None:
    step = PrepStepDecompress(format=CompressionFormat.ZIP, sub_path="x/b.csv")
    assert _prepare(_zip(("a.csv", ROWS), ("x/b.csv", b"b")), tmp_path, step) == b"b"


def test_missing_entry_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    step = PrepStepDecompress(format=CompressionFormat.ZIP, sub_path="b.csv")
    with pytest.raises(MalformedError, match=r"expected an entry b\.csv, found a\.csv, x/b\.csv"):
        _prepare(_zip(("a.csv", ROWS), ("x/b.csv", b"b")), tmp_path, step)


@pytest.mark.parametrize(
    "packed",
    [b"", ROWS, _zip(("a", ROWS))[:-30], _zip(), _zip(("a", ROWS)).replace(b"\x50\x4b\x03\x04", b"XXXX")],
    ids=["empty", "text", "cut", "no-entry", "no-local-header"],
)
def test_damaged_zip_is_named(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(MalformedError, match=r"zip file at source\.gz"):
        _prepare(packed, tmp_path, ZIP)


def test_flipped_bytes_in_a_zip_are_noticed(tmp_path: Path) -> None:
    packed = _zip(("a", ROWS), method=zipfile.ZIP_STORED)
    with pytest.raises(MalformedError, match="Bad CRC"):
        _prepare(packed.replace(b"100,10000", b"100,10001"), tmp_path, ZIP)


def test_zip_with_a_password_is_not_supported(tmp_path: Path) -> None:
    packed = bytearray(_zip(("a", ROWS)))
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(UnsupportedError, match="password"):
        _prepare(bytes(packed), tmp_path, ZIP)


def test_zip_of_an_unknown_method_is_not_supported(tmp_path: Path) -> None:
    packed = bytearray(_zip(("a", ROWS)))
    packed[8] = 99
    packed[packed.index(b"PK\x01\x02") + 10] = 99
    with pytest.raises(UnsupportedError, match="compression"):
        _prepare(bytes(packed), tmp_path, ZIP)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_method_that_unpacks_without_bound_is_not_supported(tmp_path: Path, method: int) -> None:
    with pytest.raises(UnsupportedError, match=f"method {method} of a .*stored and deflated"):
        _prepare(_zip(("a", ROWS), method=method), tmp_path, ZIP)


def test_zip_with_a_directory_that_would_fill_the_memory_is_rejected(tmp_path: Path) -> None:
    packed = _zip(*((f"{n:05}" + "x" * 1_000, b"") for n in range(4_100)))
    with pytest.raises(MalformedError, match="a directory of more than 4194304 bytes"):
        _prepare(packed, tmp_path, ZIP)


def test_name_of_an_entry_leads_nowhere(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("../outside", "/etc/outside", "a\0b", ""):
        entry = zipfile.ZipInfo("x")
        entry.filename = name
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(entry, b"rows")
        assert _prepare(buffer.getvalue(), inside, ZIP) == b"rows"
        for path in inside.iterdir():
            path.unlink()
    assert list(tmp_path.iterdir()) == [inside]


# Commands


def _sh(script: str) -> PrepStepPipe:
    return PrepStepPipe(command=("sh", "-c", script))


def test_command_is_rejected_unless_the_operator_allows_it(tmp_path: Path) -> None:
    marker = tmp_path / "packed"
    with pytest.raises(SourceRejectedError, match=r"ingest\.commands = 'sandboxed'"):
        _prepare(b"x", tmp_path, _sh(f"rm {marker}"))
    assert marker.exists()


@pytest.fixture(params=[Commands.SANDBOXED, Commands.UNCONFINED])
def commands(request: pytest.FixtureRequest) -> Commands:
    return request.param


def test_sandboxed_command_has_no_network_no_files_of_the_machine_and_nothing_to_write_to(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the key")
    look = f"cat {secret}; ls {Path.home()} /home /root; cat /proc/net/dev | wc -l"
    script = f"{look}; echo x > {secret}; echo x > /usr/x; true"
    folder = tmp_path / "work"
    folder.mkdir()
    stated = _prepare(b"", folder, _sh(script), commands=Commands.SANDBOXED)
    assert stated.split() == [b"3"]  # two lines of heading, and the loopback of its own network
    assert secret.read_text() == "the key"


def test_allowed_command_turns_input_into_output(commands: Commands, tmp_path: Path) -> None:
    assert _prepare(b"b\na\n", tmp_path, _sh("sort"), commands=commands) == b"a\nb\n"


def test_failing_command_is_named_with_what_it_said(commands: Commands, tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match=r"output of sh at source\.gz: expected exit code 0, found 3: no such"):
        _prepare(b"x", tmp_path, _sh("echo some; echo no such column >&2; exit 3"), commands=commands)


def test_command_that_does_not_exist_is_named(commands: Commands, tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="no-such-program"):
        _prepare(b"x", tmp_path, PrepStepPipe(command=("no-such-program",)), commands=commands)


def test_endless_output_of_a_command_stops_at_the_limit(commands: Commands, tmp_path: Path) -> None:
    with pytest.raises(SourceTooLargeError):
        _prepare(b"x", tmp_path, PrepStepPipe(command=("yes",)), commands=commands)


def test_command_that_does_not_end_is_killed_with_its_children(commands: Commands, tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(b"x")
    reader = LocalSourceReader(limits=SourceLimits(command_s=0.2), commands=commands)
    with pytest.raises(MalformedError, match=r"an end within 0\.2 s"):
        asyncio.run(reader.prepare(_sh("sleep 60 & sleep 60"), path=path, name="s", folder=tmp_path))


def test_command_sees_no_secrets_of_our_environment(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    assert b"secret" not in _prepare(b"", tmp_path, PrepStepPipe(command=("env",)), commands=commands)
