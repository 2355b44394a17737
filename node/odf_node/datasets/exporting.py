"""Write a dataset as files in ODF's repository layout: objects, blocks, proofs, and the head last (LAYOUT-4)."""

import io
from dataclasses import dataclass
from typing import Final

from odf_node.byte_rate import ByteRate, Pacing
from odf_node.datasets.chains import iter_decoded
from odf_node.datasets.presence import Presence
from odf_node.home import Home
from odf_node.keys.logs import KeyLogs
from odf_node.ports.layouts import (
    HEAD_PATH,
    KEY_LOG_PATH,
    LayoutTarget,
    signature_path,
    signed_head_path,
    step_record_path,
)
from odf_node.ports.peer_errors import PeerNotFoundError
from odf_node.ports.progress import ProgressLine
from odf_node.readable_inputs import ANYBODY, may_see_records
from odf_node.records.datasets import DatasetRecord
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.exchange.block_outlines import WantedObject, iter_wanted
from odf_protocol.exchange.messages import KeyLogMessage, encode_message
from odf_protocol.exchange.routes import block_path, object_path
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

_MAX_HEAD_BYTES: Final = 128
_NO_KEYS: Final = encode_message(KeyLogMessage(events=()))


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote; ``known`` is the head that was there before."""

    record: DatasetRecord
    url: str
    known: Head | None
    new_blocks: int
    written_objects: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class Exporting:
    """The use case behind ``odf-node export`` and ``push`` to folders and buckets."""

    home: Home
    rate: ByteRate

    async def export(self, record: DatasetRecord, target: LayoutTarget, progress: ProgressLine) -> ExportReport:
        """Bring a place up to our head. Everything is checked against its hash on the way out.

        Raises:
            RejectedError: The place holds a history that ours does not continue.
            ObjectsAbsentError: What the place lacks is not here either; nothing was written.
            ObjectCorruptError, ObjectNotFoundError: Our own copy is damaged; ``repair`` fixes it.
            PeerUnavailableError, PeerForbidsError: The place cannot be written.
        """
        pacing = Pacing(self.rate)
        return await finish_in_thread(lambda: self._export(record, target, progress, pacing), stop=pacing.stop)

    def _export(
        self, record: DatasetRecord, target: LayoutTarget, progress: ProgressLine, pacing: Pacing
    ) -> ExportReport:
        with target:
            known = self._find_known(record, target)
            key_log = encode_message(KeyLogMessage(events=KeyLogs(self.home.store).documents_about(record.id)))
            has_keys = key_log != _NO_KEYS
            if known == record.head:
                # A key may change without a new block.
                if has_keys and not _holds(target, KEY_LOG_PATH, key_log):
                    self._write_signed_head(record, target, pacing)
                    target.settle()
                    _write(target, KEY_LOG_PATH, key_log, pacing)
                return ExportReport(record, target.url, known, 0, 0, 0)
            after = -1 if known is None else known.sequence_number
            upto = record.head.sequence_number
            wanted = {
                item.hash: item
                for block in iter_decoded(self.home.store, record.id, after=after, upto=upto)
                for item in iter_wanted(block.event)
            }
            missing = [item for item in wanted.values() if target.find_size(_path_of(item)) != item.size_bytes]
            Presence(self.home.store, self.home.objects).require(record, [item.hash for item in missing])
            self.home.store.access.note_read(record, what="blocks")
            progress.on_progress(f"{record.name}: writing to {target.url}")
            progress.expect(sum(item.size_bytes for item in missing))
            for item in missing:
                self.home.objects.check(item.hash)
                with self.home.objects.open(item.hash) as content:
                    target.write(_path_of(item), pacing.pace(content), item.size_bytes)
                progress.advance(item.size_bytes)
            self._write_blocks(record, target, after, upto, pacing)
            if has_keys:
                _write(target, KEY_LOG_PATH, key_log, pacing)
            target.settle()
            _write(target, HEAD_PATH, str(record.head.hash).encode("ascii"), pacing)
            size_bytes = sum(item.size_bytes for item in missing)
            return ExportReport(record, target.url, known, upto - after, len(missing), size_bytes)

    def _write_blocks(self, record: DatasetRecord, target: LayoutTarget, after: int, upto: int, pacing: Pacing) -> None:
        with_records = may_see_records(self.home.store, record, ANYBODY)
        for stored in self.home.store.iter_blocks(record.id, after=after, upto=upto):
            if stored.signature is not None:
                _write(target, signature_path(stored.hash), stored.signature, pacing)
            step_record = self.home.store.find_step_record(record.id, stored.hash) if with_records else None
            if step_record is not None:
                _write(target, step_record_path(stored.hash), step_record.raw, pacing)
            _write(target, block_path(stored.hash), stored.raw, pacing)
        self._write_signed_head(record, target, pacing)

    def _write_signed_head(self, record: DatasetRecord, target: LayoutTarget, pacing: Pacing) -> None:
        signed_head = self.home.store.find_signed_head(record.id)
        if signed_head is not None and signed_head.head == record.head:
            _write(target, signed_head_path(record.head.hash), signed_head.raw, pacing)

    def _find_known(self, record: DatasetRecord, target: LayoutTarget) -> Head | None:
        try:
            with target.open(HEAD_PATH, "dataset").file as file:
                text = file.read(_MAX_HEAD_BYTES)
        except PeerNotFoundError:
            return None
        try:
            there = Multihash.parse(text.decode("ascii").strip())
        except (UnicodeDecodeError, MalformedError) as error:
            expected = "the text of a hash"
            raise MalformedError("refs/head", where=target.url, expected=expected, found=repr(text)) from error
        found = self.home.store.find_block(record.id, there)
        if found is None:
            raise RejectedError(
                f"LAYOUT-5 place-holds-a-beginning-of-our-chain ({target.url})",
                expected=f"a block of '{record.name}' in this node",
                found=f"{there}: a newer one, or another history; nothing was written",
            )
        return Head(found.sequence_number, found.hash)


def _holds(target: LayoutTarget, path: str, content: bytes) -> bool:
    if target.find_size(path) != len(content):
        return False
    with target.open(path, path).file as file:
        return file.read(len(content) + 1) == content


def _path_of(item: WantedObject) -> str:
    return object_path(item.kind, item.hash)


def _write(target: LayoutTarget, path: str, content: bytes, pacing: Pacing) -> None:
    target.write(path, pacing.pace(io.BytesIO(content)), len(content))
