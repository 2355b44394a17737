"""What an acceptance leaves in this node's records."""

from odf_node.acceptance.offers import Candidate
from odf_node.acceptance.unchecked import list_unchecked
from odf_node.ports import Acceptance, NewDataset, Origin
from odf_node.ports.commits import Grounds
from odf_protocol.policy import AcceptRule, Decision
from odf_protocol.timestamp import Timestamp


def acceptance_of(
    candidate: Candidate, decision: Decision, rule: AcceptRule, replayed: int, now: Timestamp
) -> Acceptance:
    """Write down on what grounds the blocks of ``candidate`` were accepted."""
    assert decision.trust is not None
    first, last, portion = candidate.chain.first, candidate.chain.last, candidate.offer.portion
    left = () if portion.has_rows else list_unchecked(candidate.chain.view.kind, has_files=portion.has_files)
    grounds = Grounds(
        first=first.sequence_number,
        last=last.sequence_number,
        policy=rule.policy.value if rule.policy else "default",
        rule=rule.name,
        reason=decision.reason,
        auditors=tuple((auditor.name, str(auditor.key)) for auditor in decision.rests_on),
        replayed_steps=replayed,
        partial=decision.partial,
        warnings=candidate.chain.warnings,
        replaced=candidate.replaced.hash if candidate.replaced else None,
        not_checked=left,
    )
    return Acceptance(
        head=last,
        trust=decision.trust,
        source_url=candidate.offer.source_url,
        accepted_at=now,
        grounds=grounds,
    )


def new_dataset_of(candidate: Candidate, now: Timestamp) -> NewDataset:
    """Make the record of a dataset that is new here."""
    return NewDataset(
        name=candidate.offer.local_name,
        asked_name=candidate.offer.name if candidate.offer.kept_as else None,
        kind=candidate.chain.view.kind,
        origin=Origin.PULLED,
        created_at=now,
        origin_url=candidate.offer.source_url,
        pinned_key=candidate.keys.history.current_key if candidate.signed else None,
        published=candidate.offer.published,
    )
