"""Evidence of refusals: kept in the staging area, so that a refusal changes nothing of what the node holds (ACCEPT-6).

One folder per refusal, ``staging/refused/<id>/``: ``report.json`` says who offered what, which rule it broke and how it
differs from a re-execution; beside it lie the offered blocks, the offered slices and, where there was one, the
recomputed slice. A folder is made under a temporary name and renamed when it is whole. The id is made of what was
refused and why: the same offer, refused again, takes no more room.
"""

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha3_256
from pathlib import Path
from typing import Any, Final

from odf_node.errors import RefusedError, UnknownDatasetError
from odf_node.exchange.messages import KeyLogMessage, encode_message
from odf_node.services.offers import Offer
from odf_protocol.timestamp import Timestamp

REPORT: Final = "report.json"
KEY_LOG_FILE: Final = "key-log.json"
"""The key log that came with an offer, as a message of the exchange."""
ID_LENGTH: Final = 12  # guess: hexadecimal digits; collisions among a node's refusals are out of the question


@dataclass(frozen=True, slots=True)
class Refusals:
    """The folder of refusals."""

    folder: Path
    limit_bytes: int = 0
    """How much is kept; the oldest goes first. 0: everything."""

    def trim(self) -> tuple[int, int]:
        """Remove the oldest refusals beyond the limit; the newest stays in any case.

        Returns:
            How many were removed, and their bytes.
        """
        if not self.limit_bytes or not self.folder.is_dir():
            return 0, 0
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                size_bytes = sum(file.lstat().st_size for file in path.rglob("*"))
                found.append((path.lstat().st_mtime_ns, path, size_bytes))
        count = freed_bytes = kept_bytes = 0
        for position, (_, path, size_bytes) in enumerate(sorted(found, reverse=True)):
            kept_bytes += size_bytes
            if position and kept_bytes > self.limit_bytes:
                shutil.rmtree(path, ignore_errors=True)
                count, freed_bytes = count + 1, freed_bytes + size_bytes
        return count, freed_bytes

    def keep(
        self,
        *,
        rule: str,
        reason: str,
        sequence_number: int | None,
        offer: Offer,
        files: Mapping[str, Path],
        documents: Mapping[str, bytes],
        report: Mapping[str, Any],
        now: Timestamp,
    ) -> RefusedError:
        """Keep the evidence and return the error to raise.

        Args:
            rule: The clause that was broken.
            reason: One sentence for people.
            sequence_number: Of the block at fault, where one is.
            offer: What was refused.
            files: Files to keep beside the report, by the name they get.
            documents: What else is kept beside the report, by the name it gets: what this node signs about the refusal
                (an attestation of divergence), a proof of equivocation.
            report: What was found, as plain JSON values.
            now: Time of the refusal.
        """
        what: dict[str, Any] = {
            "dataset": offer.name,
            "source": offer.source_url,
            "rule": rule,
            "reason": reason,
            "block": sequence_number,
            "base": str(offer.base.hash) if offer.base else None,
            "blocks": len(offer.blocks),
            **report,
        }
        refusal_id = _identify(what, offer)
        content = {**what, "refusedAt": str(now)}
        # In the staging area proper: what a kill leaves behind there is swept.
        temporary = self.folder.parent / f"refusal-{secrets.token_hex(8)}"
        final = self.folder / refusal_id
        try:
            temporary.mkdir(parents=True, mode=0o700)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            for name, path in files.items():
                shutil.copyfile(path, temporary / name)
            for name, document in documents.items():
                (temporary / name).write_bytes(document)
            _write_offer(offer, temporary)
            if offer.key_events:
                shown = encode_message(KeyLogMessage(events=tuple(offer.key_events)))
                (temporary / KEY_LOG_FILE).write_bytes(shown)
            (temporary / REPORT).write_bytes(
                json.dumps(content, indent=2, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
            )
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
            self.trim()
        except OSError as error:
            # What is refused is refused, also where there is no room for the evidence.
            shutil.rmtree(temporary, ignore_errors=True)
            if not (final / REPORT).is_file():  # somebody else may have kept the same refusal just now
                lost = {**content, "evidence": f"could not be kept: {error.strerror or error}"}
                return RefusedError(rule, reason, sequence_number=sequence_number, report=lost)
        return RefusedError(
            rule, reason, sequence_number=sequence_number, report={**content, "id": refusal_id}, folder=final
        )

    def iter_reports(self) -> Iterator[dict[str, Any]]:
        """Yield the reports, newest first, each with its ``id`` and ``folder``."""
        if not self.folder.is_dir():
            return
        found = [self._read(path) for path in sorted(self.folder.iterdir()) if (path / REPORT).is_file()]
        yield from sorted(found, key=lambda report: str(report["refusedAt"]), reverse=True)

    def get_report(self, refusal_id: str) -> dict[str, Any]:
        """Return the report whose id begins with ``refusal_id``.

        Raises:
            UnknownDatasetError: There is none, or more than one.
        """
        matching = [report for report in self.iter_reports() if report["id"].startswith(refusal_id)]
        if len(matching) != 1:
            raise UnknownDatasetError(
                f"{len(matching)} refusals have an id that begins with '{refusal_id}'; "
                "'odf-node inspect refusals' lists them"
            )
        return matching[0]

    def _read(self, path: Path) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((path / REPORT).read_bytes())
        return {"id": path.name, "folder": str(path), **content}


def _identify(what: Mapping[str, Any], offer: Offer) -> str:
    digest = sha3_256(json.dumps(what, sort_keys=True, default=str).encode())
    for block in offer.blocks:
        digest.update(sha3_256(block.raw).digest())
    return digest.hexdigest()[:ID_LENGTH]


def _write_offer(offer: Offer, folder: Path) -> None:
    """Keep the blocks, and what came with each, as they were received."""
    blocks = folder / "blocks"
    blocks.mkdir()
    for position, block in enumerate(offer.blocks):
        for suffix, content in (("", block.raw), (".signature", block.signature), (".replay", block.replay_record)):
            if content is not None:
                (blocks / f"{position:06}{suffix}").write_bytes(content)
    if offer.signed_head is not None:
        (folder / "signed-head").write_bytes(offer.signed_head)
