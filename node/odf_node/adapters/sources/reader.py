"""The source port: choose what to do by the kind of step."""

import asyncio
import codecs
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from odf_engines.sampling.process import FoundTable
from odf_node.adapters.sources.archives import decompress
from odf_node.adapters.sources.bucket import fetch_next_object, fetch_object, is_in_bucket
from odf_node.adapters.sources.commands import pipe
from odf_node.adapters.sources.containers import fetch_output
from odf_node.adapters.sources.database import SCHEME, fetch_rows
from odf_node.adapters.sources.declared import check_container, check_fetch, check_prepare
from odf_node.adapters.sources.files import fetch_file, fetch_next_match, take_file
from odf_node.adapters.sources.ftp import FTP_SCHEME, fetch_ftp
from odf_node.adapters.sources.limits import BoundedFile, FetchContext, SourceLimits
from odf_node.adapters.sources.mqtt import fetch_mqtt
from odf_node.adapters.sources.postgres import POSTGRES_SCHEMES, fetch_postgres
from odf_node.adapters.sources.samples import read_sample, read_table
from odf_node.adapters.sources.url import fetch_url
from odf_node.byte_rate import ByteRate
from odf_node.ports.images import ImageShelf
from odf_node.ports.sources import Commands, Fetched, Prepared, Sample, UpToDate
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    FetchStep,
    FetchStepContainer,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    PrepStep,
    PrepStepDecompress,
    PrepStepPipe,
    SetPollingSource,
    SourceCachingForever,
    SourceState,
)
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSourceReader:
    """``SourceReader`` of this machine.

    ``commands``: who may run those of manifests; ``images``: which there are. ``messages``: where those of brokers
    wait; None: with each fetch.
    """

    limits: SourceLimits = field(default_factory=SourceLimits)
    rate: ByteRate = field(default_factory=ByteRate, compare=False)
    commands: Commands = Commands.NOBODY
    images: ImageShelf | None = None
    messages: Path | None = None

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
        context = FetchContext(state, now, folder, self.limits, self.rate)
        if isinstance(step, FetchStepMqtt):
            return await fetch_mqtt(step, context, session=session, messages=self.messages or folder)
        if isinstance(step, FetchStepContainer):
            return await fetch_output(
                step, state=state, folder=folder, limits=self.limits, commands=self.commands, images=self.images
            )
        if not isinstance(step, FetchStepUrl | FetchStepFilesGlob):
            kind = type(step).__name__.removeprefix("FetchStep")
            raise UnsupportedError("fetch step", found=kind, supported="Url, FilesGlob, Container, Mqtt")
        if isinstance(step.cache, SourceCachingForever) and state is not None:
            return UpToDate()
        if isinstance(step, FetchStepFilesGlob):
            if is_in_bucket(step.path):
                return await fetch_next_object(step, context, waiting=waiting)
            return await asyncio.to_thread(fetch_next_match, step, context)
        scheme = step.url.split(":", 1)[0].lower()
        if scheme in {"http", "https"}:
            return await fetch_url(step, context)
        if scheme == "file":
            return await asyncio.to_thread(fetch_file, step, context)
        if scheme == SCHEME:
            return await asyncio.to_thread(fetch_rows, step, context)
        if scheme in POSTGRES_SCHEMES:
            return await fetch_postgres(step, context)
        if scheme == FTP_SCHEME:
            return await fetch_ftp(step, context)
        if is_in_bucket(step.url):
            return await fetch_object(step, context)
        supported = "http, https, ftp, file, sqlite, postgresql, s3"
        raise UnsupportedError("URL scheme of a source", found=scheme, supported=supported)

    def check(self, source: SetPollingSource, at: At) -> None:
        if isinstance(source.fetch, FetchStepContainer):
            check_container(source.fetch, self.commands, self.images, at / "fetch")
        else:
            check_fetch(source.fetch, at / "fetch")
        check_prepare(source.prepare or (), self.commands, at / "prepare")

    def take(self, source: Path | BinaryIO, *, name: str, folder: Path) -> Path:
        return take_file(source, name=name, folder=folder, limits=self.limits)

    async def prepare(self, step: PrepStep, *, path: Path, name: str, folder: Path) -> Prepared:
        target = folder / f"prepared-{secrets.token_hex(8)}"
        match step:
            case PrepStepDecompress():
                unread = await asyncio.to_thread(
                    decompress, step, path=path, target=target, name=name, limits=self.limits
                )
                return Prepared(target, unread)
            case PrepStepPipe():
                await pipe(step, path=path, target=target, name=name, limits=self.limits, commands=self.commands)
                return Prepared(target)

    async def read_sample(self, source: str, *, limit_bytes: int) -> Sample:
        return await read_sample(source, limit_bytes=limit_bytes, limits=self.limits)

    async def read_table(self, kind: str, content: bytes | Path, *, shown_as: str, is_whole: bool = True) -> FoundTable:
        return await asyncio.to_thread(read_table, kind, content, shown_as, is_whole=is_whole)

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
    """Put a byte that UTF-8 never has, 0xFF, where bytes mean nothing: their record is refused, and no other one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error(_MARK_INVALID, _mark_invalid)
