"""Evidence of rejections, kept in the staging area: a rejection changes nothing that the node holds (ACCEPT-6).

One folder per rejection, ``staging/refused/<id>/``: ``report.json`` says who proposed what, which rule it broke, how it
differs from a re-execution; beside it lie the offered blocks, the offered slices and, where there was one, the
re-executed slice. A folder is made under a temporary name and renamed when it is whole. The id is made of what was
rejected and why, and begins with the dataset's: the same offer, rejected again, takes no more room, and what is offered
again with a change makes room for itself, not others.

The blocks are in one file: a chain has up to a million of them, and a disk gives each file kilobytes and a number, of
which it has not many. It is a tar, and not the packs of the exchange, because a signature that is there and empty is
evidence too.

Source: clauses ACCEPT-6 in ``spec/extensions/acceptance.md``, HOME-45 and HOME-48 in ``spec/home.md``.
"""

import io
import json
import secrets
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha3_256
from pathlib import Path
from typing import Any, Final

import zstandard

from odf_node.acceptance.offers import Proposal
from odf_node.errors import ProposalRejectedError, UnknownDatasetError
from odf_node.ports.block_stage import ProposedBlock
from odf_protocol.exchange.messages import KeyLogMessage, encode_message
from odf_protocol.timestamp import Timestamp

REPORT: Final = "report.json"
KEY_LOG_FILE: Final = "key-log.json"
"""The key log that came with an offer, as a message of the exchange."""
BLOCKS_FILE: Final = "blocks.tar.zst"
"""What was offered: files named by position, ``000000``, ``000000.signature``, ``000000.replay``."""
DATASET_DIGITS: Final = 4
ID_LENGTH: Final = 16
"""Hexadecimal digits, of the dataset and of the rest.  # guess: collisions are out of the question"""
MAX_KEPT: Final = 1000  # guess: more than anybody looks at; all of them are looked through at each rejection
_COMPRESSION_LEVEL: Final = 3  # as of packs
_UNIT_BYTES: Final = 4096
"""What a disk gives a file at least, and what it needs to know of it, rounded up.  # guess: ext4"""


@dataclass(frozen=True, slots=True)
class Rejections:
    """The folder of rejections."""

    folder: Path
    limit_bytes: int = 0
    """How much is kept; of the dataset that takes most, the oldest goes first. 0: everything."""

    def trim(self, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove rejections beyond the limits, or only count them in a dry run; the newest stays in any case.

        Returns:
            How many were removed, and their bytes.
        """
        if not self.limit_bytes or not self.folder.is_dir():
            return 0, 0
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                found.append(_Kept(path.lstat().st_mtime_ns, path, _room_of(path)))
        found.sort(reverse=True)
        by_dataset: defaultdict[str, list[_Kept]] = defaultdict(list)
        for each in found[1:]:
            by_dataset[each.path.name[:DATASET_DIGITS]].append(each)
        count = freed_bytes = 0
        kept_bytes = sum(each.size_bytes for each in found)
        while by_dataset and (kept_bytes > self.limit_bytes or len(found) - count > MAX_KEPT):
            # Whoever is rejected often loses evidence against itself, and none against others.
            weigh = _weigh_bytes if kept_bytes > self.limit_bytes else len
            name, most = max(by_dataset.items(), key=lambda item: (weigh(item[1]), -item[1][-1].at))
            oldest = most.pop()
            if not most:
                del by_dataset[name]
            if not dry_run:
                shutil.rmtree(oldest.path, ignore_errors=True)
            count, freed_bytes = count + 1, freed_bytes + oldest.size_bytes
            kept_bytes -= oldest.size_bytes
        return count, freed_bytes

    def iter_proposed(self, folder: Path) -> Iterator[ProposedBlock]:
        """Yield the blocks of a rejection as they were offered, up to what is damaged here."""
        with suppress(OSError, tarfile.TarError, EOFError), _open_blocks(folder / BLOCKS_FILE) as archive:
            fields: dict[str, bytes] = {}
            for member in archive:
                _, _, kind = member.name.partition(".")
                if not kind and fields:
                    yield _proposed(fields)
                    fields = {}
                content = archive.extractfile(member)
                assert content is not None
                fields[kind or "raw"] = content.read()
                archive.members.clear()  # type: ignore[attr-defined]  # all of a million would be remembered
            if fields:
                yield _proposed(fields)

    def keep(
        self,
        *,
        rule: str,
        reason: str,
        sequence_number: int | None,
        proposal: Proposal,
        files: Mapping[str, Path],
        documents: Mapping[str, bytes],
        report: Mapping[str, Any],
        now: Timestamp,
    ) -> ProposalRejectedError:
        """Keep the evidence and return the error to raise.

        Args:
            rule: The clause that was broken.
            reason: One sentence for people.
            sequence_number: Of the block at fault, where one is.
            proposal: What was rejected.
            files: Files to keep beside the report, by the name they get.
            documents: Kept beside the report, by the name each gets: what this node signs about the rejection
                (an attestation of divergence), a proof of equivocation.
            report: What was found, as plain JSON values.
            now: Time of the rejection.
        """
        what: dict[str, Any] = {
            "dataset": proposal.name,
            "source": proposal.source_url,
            "rule": rule,
            "reason": reason,
            "block": sequence_number,
            "base": str(proposal.base.hash) if proposal.base else None,
            "blocks": len(proposal.blocks),
            **report,
        }
        rejection_id = _identify(what, proposal)
        content = {**what, "refusedAt": str(now)}
        # In the staging area proper: what a kill leaves behind there is swept.
        temporary = self.folder.parent / f"rejection-{secrets.token_hex(8)}"
        final = self.folder / rejection_id
        try:
            temporary.mkdir(parents=True, mode=0o700)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            for name, path in files.items():
                shutil.copyfile(path, temporary / name)
            for name, document in documents.items():
                (temporary / name).write_bytes(document)
            _write_proposal(proposal, temporary)
            if proposal.key_events:
                shown = encode_message(KeyLogMessage(events=tuple(proposal.key_events)))
                (temporary / KEY_LOG_FILE).write_bytes(shown)
            (temporary / REPORT).write_bytes(
                json.dumps(content, indent=2, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
            )
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
            self.trim()
        except OSError as error:
            # What is rejected is rejected, also where there is no room for the evidence.
            shutil.rmtree(temporary, ignore_errors=True)
            if not (final / REPORT).is_file():  # somebody else may have kept the same rejection just now
                lost = {**content, "evidence": f"could not be kept: {error.strerror or error}"}
                return ProposalRejectedError(rule, reason, sequence_number=sequence_number, report=lost)
        return ProposalRejectedError(
            rule, reason, sequence_number=sequence_number, report={**content, "id": rejection_id}, folder=final
        )

    def iter_reports(self) -> Iterator[dict[str, Any]]:
        """Yield the reports, newest first, each with its ``id`` and ``folder``."""
        if not self.folder.is_dir():
            return
        found = []
        for path in sorted(self.folder.iterdir()):
            with suppress(FileNotFoundError, NotADirectoryError):  # unfinished, or given up just now for a newer one
                found.append(self._read(path))
        yield from sorted(found, key=lambda report: str(report["refusedAt"]), reverse=True)

    def get_report(self, rejection_id: str) -> dict[str, Any]:
        """Return the report whose id begins with ``rejection_id``.

        Raises:
            UnknownDatasetError: There is none, or more than one.
        """
        matching = [report for report in self.iter_reports() if report["id"].startswith(rejection_id)]
        if len(matching) != 1:
            raise UnknownDatasetError(
                f"{len(matching)} rejections have an id that begins with '{rejection_id}'; "
                "'odf-node inspect refusals' lists them"
            )
        return matching[0]

    def _read(self, path: Path) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((path / REPORT).read_bytes())
        return {"id": path.name, "folder": str(path), **content}


@dataclass(frozen=True, slots=True, order=True)
class _Kept:
    at: int
    path: Path
    size_bytes: int


def _weigh_bytes(kept: list[_Kept]) -> int:
    return sum(each.size_bytes for each in kept)


def _room_of(folder: Path) -> int:
    """Say how much of a disk a folder takes, with what the disk keeps about each file."""
    sizes_bytes = [1, *(path.lstat().st_size for path in folder.rglob("*"))]
    return sum(_UNIT_BYTES + -(-size_bytes // _UNIT_BYTES) * _UNIT_BYTES for size_bytes in sizes_bytes)


@contextmanager
def _open_blocks(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with (
            path.open("rb") as file,
            zstandard.ZstdDecompressor().stream_reader(file) as content,
            tarfile.open(mode="r|", fileobj=content) as archive,
        ):
            yield archive
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error


def _proposed(fields: Mapping[str, bytes]) -> ProposedBlock:
    return ProposedBlock(fields["raw"], fields.get("signature"), fields.get("replay"))


def _identify(what: Mapping[str, Any], proposal: Proposal) -> str:
    digest = sha3_256(json.dumps(what, sort_keys=True, default=str).encode())
    for block in proposal.blocks:
        digest.update(sha3_256(block.raw).digest())
    dataset = sha3_256(proposal.name.encode("utf-8", "backslashreplace")).hexdigest()[:DATASET_DIGITS]
    return (dataset + digest.hexdigest())[:ID_LENGTH]


def _write_proposal(proposal: Proposal, folder: Path) -> None:
    """Keep the blocks, and what came with each, as they were received."""
    with (
        (folder / BLOCKS_FILE).open("wb") as file,
        zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).stream_writer(file) as compressed,
        tarfile.open(mode="w|", fileobj=compressed, format=tarfile.USTAR_FORMAT) as archive,
    ):
        for position, block in enumerate(proposal.blocks):
            for suffix, content in (("", block.raw), (".signature", block.signature), (".replay", block.step_record)):
                if content is not None:
                    member = tarfile.TarInfo(f"{position:06}{suffix}")
                    member.size, member.mode = len(content), 0o600
                    archive.addfile(member, io.BytesIO(content))
                    archive.members.clear()  # type: ignore[attr-defined]
    if proposal.signed_head is not None:
        (folder / "signed-head").write_bytes(proposal.signed_head)
