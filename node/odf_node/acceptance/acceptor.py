"""Take blocks of others: verify, then decode, then judge, then accept. The one gate for pull, push and import.

To accept what a peer offers for a dataset, the following is done in this order, and the code repeats the numbers:

(0) bound the offer: it has blocks, and not too many;
(1) know whose dataset it is: the Seed's identity, and the identity pinned for the name it is held under (ACCEPT-8);
(2) check the signed head against the dataset's key, and that it names the last block offered;
(3) check every block: hash, link, chain rules, signature;
(4) have every object that the blocks name, whole and with its hash;
(5) check every row of every slice against its block (ROWS-1 to ROWS-5), and that nothing is taken back that was not
    given (ROWS-12);
(6) ask the policy what proof is needed (ACCEPT-1 to ACCEPT-4);
(7) re-execute every step of a derivative from inputs accepted here, and compare (ACCEPT-7, PLAN-7);
(8) store objects, then blocks, head, acceptance and our attestation (ACCEPT-6).

Where the user wants metadata alone, (4), (5) and (7) are left out, and the acceptance says so (PART-1, PART-2); where
rows come later, (5) and (7) are (PART-12). A later pull does them for the blocks that are held already, and (8) adds
what was found (PART-3, PART-13).

Nothing is visible before (8). A rejection at any step raises ``ProposalRejectedError``, with evidence in the staging
area. (0) to (3) are an ``Examination``, which goes on while blocks arrive; the caller fetches the objects between it
and ``accept`` (4 to 8).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from odf_node.acceptance.attesting import Attester
from odf_node.acceptance.checked_chain import NeededObject
from odf_node.acceptance.checked_rows import RowsChecked, check_rows
from odf_node.acceptance.examination import MAX_BLOCKS, Examination
from odf_node.acceptance.offers import AcceptanceReport, Candidate, FileCount, Proposal, acceptance_of, new_dataset_of
from odf_node.acceptance.proofs import gather_proof, iter_steps_of, list_builds
from odf_node.acceptance.rejecting import InsufficientProofError, Rejecter
from odf_node.acceptance.statements import RemoteStatements
from odf_node.acceptance.verification import describe_order, reexecute_steps
from odf_node.datasets.changelogs import Changelogs
from odf_node.derive.reexecution import Replayer
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from odf_node.ports.block_stage import BlockStage, MemoryStage, ProposedBlock
from odf_node.ports.objects import Arrivals
from odf_node.ports.progress import NO_PROGRESS, OnProgress
from odf_node.records.commits import Acceptance, Commit, NewBlock
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import BlockNotFoundError
from odf_node.records.evidence import HeldAttestation
from odf_node.rows.slice_process import RowReader
from odf_protocol.accept_policies import NO_POLICIES, PolicySet
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.multihash import Multihash
from odf_protocol.policy import (
    AcceptRule,
    Decision,
    Policy,
    Trust,
    decide,
    decide_on_metadata,
    decide_on_order,
    weakest,
)
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Acceptor:
    """The use case; the module's docstring is its plan. ``say`` hears how far long steps are."""

    home: Home
    engines: EngineHost
    rejecter: Rejecter
    on_progress: OnProgress = NO_PROGRESS
    policies: PolicySet = NO_POLICIES

    @property
    def now(self) -> Timestamp:
        """The time of everything that is written."""
        return self.rejecter.now

    def examine(self, proposal: Proposal) -> Candidate:
        """Do steps (0) to (3) for an offer whose blocks are all here; errors as those of ``Examination``."""
        if not 0 < len(proposal.blocks) <= MAX_BLOCKS:  # (0)
            limit = f"1 to {MAX_BLOCKS}"
            error = RejectedError("EX-LIMIT blocks-in-one-offer", expected=limit, found=len(proposal.blocks))
            raise self.rejecter.reject(proposal, error) from error
        examination = self.begin(proposal, MemoryStage(), last=proposal.blocks[-1])
        examination.take(proposal.blocks)
        return examination.finish()

    def begin(self, proposal: Proposal, stage: BlockStage, *, last: ProposedBlock | None = None) -> Examination:
        """Begin steps (0) to (3), everything that can be known from the metadata alone, for blocks still to come.

        Args:
            proposal: What is offered; its ``blocks`` are the evidence if it is rejected.
            stage: Where the blocks wait.
            last: The last block, where it is here already.
        """
        return Examination(self.home.store, proposal, stage, self.rejecter, last=last)

    def accept(
        self,
        candidate: Candidate,
        arrivals: Arrivals,
        *,
        policy: Policy | None,
        reader: RowReader | None = None,
    ) -> AcceptanceReport:
        """Do steps (4) to (8). The caller holds a writing lease since before it fetched the needed objects.

        Args:
            candidate: From ``examine``.
            arrivals: Has the needed objects; what arrived for a rejected offer is dropped by the caller.
            policy: What the user named, None for the default.
            reader: Reads the slices, where one was started while they were fetched, and may have read some already.

        Raises:
            ProposalRejectedError: A step failed; evidence is kept, nothing else changed.
            HeadMovedError: Somebody wrote first; ask the peer again.
            EngineError: The engine failed for reasons that say nothing about the peer.
        """
        proposal, chain = candidate.proposal, candidate.chain
        paths: dict[Multihash, Path] = {}
        rule = AcceptRule.of(policy)
        if policy is None:
            rule = self.policies.find_rule(proposal.name, candidate.dataset_id, proposal.source_url)
        others = self._statements()
        proposed = others.read_about(candidate.dataset_id, proposal.statements)
        checked = RowsChecked(0)
        try:
            if proposal.subset.has_files:
                self._locate_objects(candidate, arrivals, paths)  # (4)
            if proposal.subset.has_rows:
                changelogs = Changelogs(self.home.store, self.home.objects, self.engines.rows, proposal.reads)
                checked = check_rows(chain, paths, self.on_progress, reader=reader, changelogs=changelogs)  # (5)
            witnesses = others.witnesses(chain, proposed) if rule.policy is Policy.ATTESTED else ()
            named = proposal.expected_id is not None or self.policies.names_identity(candidate.dataset_id)
            proof = gather_proof(
                chain,
                self.home.store,
                self.engines,
                signed=candidate.signed,
                witnesses=witnesses,
                reads=proposal.reads,
                with_digests=bool(rule.engines),
            )
            proof = replace(proof, is_new=candidate.is_new, identity_named=named, weakness="; ".join(checked.notes))
            if proposal.subset.has_rows:
                decision = decide(rule, proof)  # (6)
            else:
                decision = decide_on_metadata(rule, proof, has_files=proposal.subset.has_files)  # (6)
            if not decision.accepted:
                checked.require_sound()
            replayer = Replayer(self.home.store, self.home.objects, self.engines.rows, paths)
            replayed = self._reexecute(candidate, decision, replayer)  # (7)
            decision = decide_on_order(decision, rule, describe_order(replayer))
            _require_acceptance(decision)
            checked.require_sound()
        except InsufficientProofError as error:
            # Nothing is wrong with the files, so they are no evidence.
            raise self.rejecter.reject(proposal, error) from error
        except (RejectedError, MalformedError, UnsupportedError, BlockNotFoundError) as error:
            raise self.rejecter.reject(proposal, error, paths=paths) from error
        acceptance = acceptance_of(candidate, decision, rule, replayed, self.now)
        attestations = (
            *self._attest(candidate, decision, rule.policy, replayed, replayer.unordered),
            *others.select_new(candidate.dataset_id, proposed, chain.hashes, self.now),
        )
        needed = candidate.needed_objects()
        files = FileCount(len(needed), sum(item.size_bytes for item in needed))
        report = partial(
            AcceptanceReport,
            replayed_steps=replayed,
            decision=decision,
            warnings=(*checked.notes, *chain.warnings),
            first_contact=candidate.is_new,
            subset=proposal.subset,
        )
        if candidate.is_held:
            record = self._confirm(candidate, arrivals, needed, acceptance, attestations)  # (8)
            count, rows = len(chain.stage), chain.count_rows()
            return report(record=record, completed_blocks=count, completed_rows=rows, completed_files=files)
        blocks = chain.new_blocks(after=candidate.replaces_after)
        record = self._commit(candidate, arrivals, needed, blocks, acceptance, attestations)  # (8)
        return report(record=record, new_blocks=len(blocks), new_rows=chain.count_rows(), new_files=files)

    def _locate_objects(self, candidate: Candidate, arrivals: Arrivals, paths: dict[Multihash, Path]) -> None:
        for needed in candidate.needed_objects():
            found = arrivals.get_size(needed.hash)  # that it has its hash is the object store's promise
            paths[needed.hash] = arrivals.get_path(needed.hash)
            if found != needed.size_bytes:
                raise RejectedError(
                    f"EX-OBJECT size-is-what-the-block-says ({needed.hash})", expected=needed.size_bytes, found=found
                )

    def _statements(self) -> RemoteStatements:
        key = self.home.keys.find_node_key()
        return RemoteStatements(self.home.store, self.policies, DidKey(key.public_key()) if key else None)

    def _reexecute(self, candidate: Candidate, decision: Decision, replayer: Replayer) -> int:
        _require_acceptance(decision)
        if not decision.reexecute:
            return 0
        held = self.home.store.find_dataset(candidate.dataset_id)
        known_before = held is not None and held.trust is Trust.REEXECUTED
        return reexecute_steps(candidate.chain, replayer, self.engines, self.on_progress, known_before=known_before)

    def _commit(
        self,
        candidate: Candidate,
        arrivals: Arrivals,
        needed: Sequence[NeededObject],
        blocks: Sequence[NewBlock],
        acceptance: Acceptance,
        attestations: tuple[HeldAttestation, ...],
    ) -> DatasetRecord:
        proposal, follows = candidate.proposal, candidate.replaced or candidate.proposal.base
        hashes = tuple(item.hash for item in needed)
        commit = Commit(
            dataset_id=candidate.dataset_id,
            expected_head=follows.hash if follows else None,
            blocks=blocks,
            replaces_after=candidate.replaces_after,
            chain_state=encode_state(candidate.chain.state),
            objects=hashes,
            absent=frozenset(() if proposal.subset.has_rows else hashes),
            not_brought=frozenset(() if proposal.subset.has_files else hashes),
            signed_head=proposal.signed_head,
            new_dataset=new_dataset_of(candidate, self.now) if candidate.is_new else None,
            known_key_events=candidate.keys.kept,
            key_events=candidate.keys.new,
            attestations=attestations,
            acceptance=acceptance,
        )
        arrivals.keep(hashes if proposal.subset.has_files else ())
        return self.home.store.commit(commit)

    def _confirm(
        self,
        candidate: Candidate,
        arrivals: Arrivals,
        needed: Sequence[NeededObject],
        acceptance: Acceptance,
        attestations: tuple[HeldAttestation, ...],
    ) -> DatasetRecord:
        """Add to blocks that were taken on their metadata alone what was found since (PART-3, PART-13)."""
        hashes = [item.hash for item in needed]
        arrivals.keep(hashes)
        self.home.store.mark_brought(candidate.dataset_id, hashes)
        earlier = (item.trust for item in self.home.store.iter_acceptances(candidate.dataset_id))
        self.home.store.put_acceptance(
            candidate.dataset_id,
            acceptance,
            rests_on=weakest((acceptance.trust, *(trust for trust in earlier if trust is not Trust.METADATA))),
            attestations=attestations,
            present=hashes if candidate.proposal.subset.has_rows else [],
        )
        record = self.home.store.find_dataset(candidate.dataset_id)
        assert record is not None
        return record

    def _attest(
        self,
        candidate: Candidate,
        decision: Decision,
        policy: Policy | None,
        replayed: int,
        unordered: Collection[Multihash],
    ) -> tuple[HeldAttestation, ...]:
        attester, chain, dataset_id = Attester(self.home.keys), candidate.chain, candidate.dataset_id
        accepted = attester.attest_acceptance(
            dataset_id,
            chain.first,
            chain.last,
            policy=policy,
            decision=decision,
            replayed_steps=replayed,
            now=self.now,
        )
        if not replayed:
            return (accepted,)
        statements = [accepted]
        for build in list_builds(chain, self.engines):
            engine, steps = self.engines.get_engine(build), iter_steps_of(chain, build, self.engines)
            # A statement has the logical hash of a slice, which follows from the order of its rows (PLAN-19).
            proved = [block for block in steps if block.hash not in unordered]
            statements += attester.attest_success(proved, dataset_id, engine, now=self.now)
        return tuple(statements)

    def keep_statements(self, dataset_id: DatasetId, raws: Sequence[bytes]) -> None:
        """Keep what others attest about blocks that are held already."""
        others = self._statements()
        for row in others.select_new(dataset_id, others.read_about(dataset_id, raws), {}, self.now):
            self.home.store.put_attestation(row)


def _require_acceptance(decision: Decision) -> None:
    if not decision.accepted:
        raise InsufficientProofError(decision.rule, f"{decision.reason}; {decision.fix}")
