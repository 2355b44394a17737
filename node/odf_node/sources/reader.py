"""The source port: choose what to do by the kind of step."""

import codecs
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from odf_node.ports.sources import Fetched, Prepared, UpToDate
from odf_node.sources.contract import FetchContext, SourceSettings
from odf_node.sources.files import take_file
from odf_node.sources.kinds import check_fetch, check_prepare, find_preparation, find_source
from odf_node.sources.limits import BoundedFile, SourceLimits
from odf_protocol.events import (
    FetchStep,
    FetchStepFilesGlob,
    FetchStepUrl,
    PrepStep,
    SetPollingSource,
    SourceCachingForever,
    SourceState,
)
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSourceReader(SourceSettings):
    """``SourceReader`` of this machine, as its settings let it."""

    async def fetch(
        self,
        step: FetchStep,
        *,
        state: SourceState | None,
        now: Timestamp,
        folder: Path,
        session: str = "odf",
        waiting: tuple[str, ...] = (),
    ) -> Fetched | UpToDate:
        kind = find_source(step)
        is_cached = isinstance(step, FetchStepUrl | FetchStepFilesGlob) and isinstance(step.cache, SourceCachingForever)
        if is_cached and state is not None:
            return UpToDate()
        return await kind.fetch(step, FetchContext(state, now, folder, self, session, waiting))

    def check(self, source: SetPollingSource, at: At) -> None:
        check_fetch(source.fetch, at / "fetch", self)
        check_prepare(source.prepare or (), at / "prepare", self)

    def take(self, source: Path | BinaryIO, *, name: str, folder: Path) -> Path:
        return take_file(source, name=name, folder=folder, limits=self.limits)

    async def prepare(self, step: PrepStep, *, path: Path, name: str, folder: Path) -> Prepared:
        target = folder / f"prepared-{secrets.token_hex(8)}"
        unread = await find_preparation(step).prepare(step, path, target, name=name, settings=self)
        return Prepared(target, unread)

    def decode(self, codec: str, *, path: Path, name: str) -> Path:
        target = path.with_name(f"decoded-{secrets.token_hex(8)}")
        write_as_utf8(codec, path=path, target=target, name=name, limits=self.limits)
        return target


_CHUNK_BYTES: Final = 1024 * 1024
_MARK_INVALID: Final = "odf-node-invalid"


def write_as_utf8(codec: str, *, path: Path, target: Path, name: str, limits: SourceLimits) -> None:
    """Write the text in ``path`` to the new file ``target``, in pieces; see ``SourceReader.decode``."""
    decoder = codecs.getincrementaldecoder(codec)(errors=_MARK_INVALID)
    with path.open("rb") as source, BoundedFile(target, name, limits) as written:
        while chunk := source.read(_CHUNK_BYTES):
            written.write(_encode(decoder.decode(chunk)))
        written.write(_encode(decoder.decode(b"", final=True)))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    """Put a byte that UTF-8 never has, 0xFF, where bytes mean nothing: their record is rejected, and no other one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error(_MARK_INVALID, _mark_invalid)
