"""Reject an offer: keep what proves why, freeze what it contradicts, and give the error to raise."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odf_node.acceptance.attesting import Attester
from odf_node.acceptance.histories import find_equivocation
from odf_node.acceptance.offers import Proposal
from odf_node.acceptance.refusals import Rejections
from odf_node.acceptance.verification import ReexecutionMismatchError
from odf_node.engines.sessions import EngineHost
from odf_node.errors import ProposalRejectedError
from odf_node.home import Home
from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class InsufficientProofError(RejectedError):
    """Nothing is wrong with what was offered, but the policy asks for more proof than there is."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(rule)
        self.args = (reason,)


@dataclass(frozen=True, slots=True)
class Rejecter:
    """Rejects what is offered at ``now``."""

    home: Home
    engines: EngineHost
    refusals: Rejections
    now: Timestamp

    def reject(
        self, proposal: Proposal, error: OdfError, *, paths: Mapping[Multihash, Path] | None = None
    ) -> ProposalRejectedError:
        """Keep the evidence of a rejection and return the error to raise.

        Args:
            proposal: What is rejected.
            error: Why.
            paths: The files that came with it, where they are evidence.
        """
        report: dict[str, Any] = {
            **{
                name: None if (stated := getattr(error, name, None)) is None else str(stated)
                for name in ("expected", "found")
            },
            "partsAfter": proposal.parts_after,
        }
        files = {f"{object_hash}.offered": path for object_hash, path in (paths or {}).items()}
        documents: dict[str, bytes] = {}
        if isinstance(error, ReexecutionMismatchError):
            if statement := self._state_divergence(error):
                documents["attestation.json"] = statement
            report["divergence"] = error.mismatch.divergence.to_json()
            files = {"published.parquet": error.mismatch.published} if error.mismatch.published else {}
            if error.mismatch.reexecuted:
                files["recomputed.parquet"] = error.mismatch.reexecuted
        if proof := find_equivocation(
            self.home.store,
            proposal.signed_head,
            proposal.blocks,
            name=proposal.local_name,
            parting=proposal.parting,
        ):
            documents["equivocation.json"] = proof.raw
            report["equivocation"] = proof.explain()
        return self.refusals.keep(
            rule=getattr(error, "rule", type(error).__name__),
            reason=str(error) + _describe_fork(proposal.parts_after),
            sequence_number=getattr(error, "sequence_number", None),
            proposal=proposal,
            files=files,
            documents=documents,
            report=report,
            now=self.now,
        )

    def _state_divergence(self, error: ReexecutionMismatchError) -> bytes | None:
        mismatch = error.mismatch
        return Attester(self.home.keys).sign_divergence(
            mismatch.block,
            mismatch.dataset_id,
            self.engines.get_engine(mismatch.engine),
            mismatch.divergence,
            reexecuted=mismatch.reexecuted_hash,
            now=self.now,
        )


def _describe_fork(parts_after: int | None) -> str:
    if parts_after is None:
        return ""
    return f"; the histories part after block {parts_after}" if parts_after >= 0 else "; they have no block in common"
