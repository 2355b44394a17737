"""Clauses ROWS-6 and SANDBOX-17: answers of a reader that is in the hands of a file reject the file, and do no more."""

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host import reader_process
from odf_engines.host.output_checks import SizeCheck
from odf_engines.host.output_reader import OutputReader
from odf_engines.sandbox.profile import Mount, Profile
from odf_node.rows.slice_process import ReadingLimits
from odf_protocol.dataset_view import apply, start_view
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.vocabulary import Vocabulary
from support import lying_reader
from support.offers import PeerChain, root_chain
from support.slice_reader import OwnReader

LIMITS = ReadingLimits(memory_bytes=64 * 1024**2, written_bytes=1024**2)


def framed(text: bytes, body: bytes = b"", *, header_bytes: int | None = None, body_bytes: int | None = None) -> bytes:
    """A message as a liar writes it."""
    sizes = len(text) if header_bytes is None else header_bytes, len(body) if body_bytes is None else body_bytes
    return struct.pack(">IQ", *sizes) + text + body


PART = framed(b'{"part": true}', bytes(1 << 20))
ANSWERS = {
    "no message": b"\xff" * 100,
    "no JSON": framed(b"\xff"),
    "no object": framed(b"[]"),
    "nothing in it": framed(b"{}"),
    "a depth that no reader of JSON takes": framed(b"[" * 100_000),
    "a header beyond bounds": framed(b"{}", header_bytes=2**32 - 1),
    "a body beyond all numbers": framed(b'{"result": null}', body_bytes=2**64 - 1),
    "more bytes than were asked for": framed(b'{"result": null}', body_bytes=1_000_000_000_000),
    "a truth for a count": framed(b'{"result": true}'),
    "a result of another kind": framed(b'{"result": {"rows": "many"}}'),
    "an error of another kind": framed(b'{"error": 5}'),
    "an error without its fields": framed(b'{"error": {"kind": "rejected"}}'),
    "parts without end": PART + PART,
    "a part that is too large": framed(b'{"part": true}', body_bytes=99_999_999),
    "progress without end": framed(b'{"progress": 1}') * 1_000,
    "progress that is none": framed(b'{"progress": -1}'),
    "no table": framed(b'{"result": "table"}', b"ABCD"),
}
Ask = Callable[[OwnReader, PeerChain, Path], Any]
QUERY_SERVICE: dict[str, Ask] = {
    "check": lambda reader, chain, path: reader.check(path, *_last_block(chain)),
    "rewrite": lambda reader, chain, path: reader.rewrite(path, *_last_block(chain), io.BytesIO()),
    "summarise": lambda reader, _, path: reader.summarise(path, max_leaves=9, max_schema_bytes=9),
    "window": lambda reader, _, path: reader.read_window(path, first=0, count=1, columns=["city"], max_characters=9),
    "like": lambda reader, _, path: reader.find_rows_like(path, pattern=path, row=0, keys=["city"], most=1),
    "compare": lambda reader, _, path: reader.compare(path, path, Vocabulary(), sequence_number=2),
    "times": lambda reader, _, path: reader.read_event_times(path, "event_time"),
    "last rows": lambda reader, _, path: reader.read_last_rows(path, 1),
    "hash": lambda reader, _, path: reader.hash_rows(path),
    "describe": lambda reader, _, path: reader.describe(path),
}


def _last_block(chain: PeerChain) -> tuple[Any, Any]:
    view = start_view(chain.blocks[0])
    for block in chain.blocks[1:]:
        view = apply(view, block)
    return chain.blocks[-1], view


@pytest.fixture(params=ANSWERS)
def lie(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program in the reader's place that gives this answer to all."""
    (tmp_path / "answer").write_bytes(ANSWERS[request.param])
    made = reader_process.profile_of_reader

    def with_liar(*packages: Any, **options: Any) -> Profile:
        profile = made(*packages, **options)
        program = Mount(Path(lying_reader.__file__), "/runtime/plug-ins/lying_reader.py")
        return replace(profile, mounts=(*profile.mounts, program, Mount(tmp_path / "answer", "/answer")))

    monkeypatch.setattr(reader_process, "PROGRAM", "lying_reader")
    monkeypatch.setattr(reader_process, "profile_of_reader", with_liar)
    return str(request.param)


@pytest.mark.usefixtures("lie")
def test_answer_that_makes_no_sense_rejects_the_file(tmp_path: Path) -> None:
    chain, path = root_chain(tmp_path, slices=1), tmp_path / "slice"
    path.write_bytes(next(iter(chain.files.values())))
    with OwnReader(LIMITS) as reader:
        for name, ask in QUERY_SERVICE.items():
            try:
                found = ask(reader, chain, path)
            except (RejectedError, MalformedError, UnsupportedError):
                continue
            # What could be true is taken: whoever took the reader over can say it in any case.
            assert (name, found) == ("compare", None) or name in {"check", "describe"}, (name, found)


@pytest.mark.usefixtures("lie")
def test_answer_that_makes_no_sense_rejects_the_output_of_an_engine(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(b"PAR1")
    reader = OutputReader(Limits(memory_bytes=LIMITS.memory_bytes, decoded_bytes=LIMITS.written_bytes))
    try:
        with pytest.raises((EngineFailureError, LimitExceededError)):
            reader.check(path, SizeCheck(max_decoded_bytes=1), wall_s=60)
        with pytest.raises((EngineFailureError, LimitExceededError)):
            reader.copy(path, io.BytesIO(), None, wall_s=60)
    finally:
        reader.close()


def test_reader_says_itself_what_it_read(tmp_path: Path) -> None:
    chain, path = root_chain(tmp_path, slices=1), tmp_path / "slice"
    path.write_bytes(next(iter(chain.files.values())))
    with OwnReader() as reader:
        for ask in list(QUERY_SERVICE.values())[3:]:
            ask(reader, chain, path)
        QUERY_SERVICE["check"](reader, chain, path)
