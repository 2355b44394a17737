"""Evidence of refusals: kept in the staging area, so that a refusal changes nothing of what the node holds (ACCEPT-6).

One folder per refusal, ``staging/refused/<id>/``: ``report.json`` says who offered what, which rule it broke and how it
differs from a re-execution; beside it lie the offered blocks, the offered slices and, where there was one, the
recomputed slice. A folder is made under a temporary name and renamed when it is whole.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha3_256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odf_node.errors import RefusedError, UnknownDatasetError
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_node.services.acceptance import Offer

REPORT: Final = "report.json"
ID_LENGTH: Final = 12  # guess: hexadecimal digits; collisions among a node's refusals are out of the question


@dataclass(frozen=True, slots=True)
class Refusals:
    """The folder of refusals."""

    folder: Path

    def keep(
        self,
        *,
        rule: str,
        reason: str,
        sequence_number: int | None,
        offer: "Offer",
        files: Mapping[str, Path],
        recomputed: "pa.Table | None",
        statement: bytes | None,
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
            recomputed: What re-execution gave instead, where there was one.
            statement: What this node signs about the refusal (an attestation of divergence), where it can.
            report: What was found, as plain JSON values.
            now: Time of the refusal.
        """
        content = {
            "dataset": offer.name,
            "source": offer.source_url,
            "refusedAt": str(now),
            "rule": rule,
            "reason": reason,
            "block": sequence_number,
            "base": str(offer.base.hash) if offer.base else None,
            "blocks": len(offer.blocks),
            **report,
        }
        raw = json.dumps(content, indent=2, ensure_ascii=False, default=str).encode()
        refusal_id = sha3_256(raw).hexdigest()[:ID_LENGTH]
        temporary = self.folder / f".{refusal_id}.partial"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True, mode=0o700)
        (temporary / REPORT).write_bytes(raw)
        for name, path in files.items():
            shutil.copyfile(path, temporary / name)
        if recomputed is not None:
            import pyarrow.parquet as pq

            pq.write_table(recomputed, temporary / "recomputed.parquet")
        if statement is not None:
            (temporary / "attestation.json").write_bytes(statement)
        blocks = temporary / "blocks"
        blocks.mkdir()
        for position, block in enumerate(offer.blocks):
            (blocks / f"{position:06}").write_bytes(block.raw)
            if block.signature is not None:
                (blocks / f"{position:06}.signature").write_bytes(block.signature)
        if offer.signed_head is not None:
            (temporary / "signed-head").write_bytes(offer.signed_head)
        final = self.folder / refusal_id
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        return RefusedError(
            rule, reason, sequence_number=sequence_number, report={**content, "id": refusal_id}, folder=final
        )

    def iter_reports(self) -> Iterator[dict[str, Any]]:
        """Yield the reports, newest first, each with its ``id`` and ``folder``."""
        if not self.folder.is_dir():
            return
        found = [self._read(path) for path in self.folder.iterdir() if (path / REPORT).is_file()]
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
