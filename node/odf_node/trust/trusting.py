"""What datasets rest on, by which rule, and what would change under other policies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from odf_node.acceptance.attesting import describe_attestation
from odf_node.acceptance.proofs import gather_proof
from odf_node.acceptance.refusals import Rejections
from odf_node.acceptance.statements import RemoteStatements
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.acceptance.verification import check_stored
from odf_node.datasets.chains import describe_acceptance, find_partial
from odf_node.derive.grading import describe_reach
from odf_node.engines.sessions import EngineHost
from odf_node.errors import UnknownDatasetError
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.keys.reports import KeyReports
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.accept_policies import PolicySet
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.policy import AcceptRule, Auditor, Decision, Trust, decide, decide_on_metadata
from odf_protocol.public_addresses import without_mark


@dataclass(frozen=True, slots=True)
class TrustStanding:
    """A dataset as it stands under some policies: the rule that is for it, and what the rule says today.

    ``partial``: what makes it less than its declared query over the whole input (PLAN-10).
    """

    record: DatasetRecord
    rule: AcceptRule
    decision: Decision
    partial: str

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "dataset": self.record.name,
            "id": str(self.record.id),
            "restsOn": self.record.trust.in_words(self.partial),
            "partial": self.partial or None,
            "rule": self.rule.name,
            "accepted": self.decision.accepted,
            "wouldRestOn": self.decision.ground,
            "reason": self.decision.reason,
        }


@dataclass(frozen=True, slots=True)
class TrustChange:
    """A dataset whose standing other policies would change."""

    before: TrustStanding
    after: TrustStanding

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {"dataset": self.before.record.name, "now": self.before.to_json(), "then": self.after.to_json()}


@dataclass(frozen=True, slots=True)
class TrustReport:
    """The use case behind ``odf-node trust``: reads, decides, changes nothing."""

    home: Home
    engines: EngineHost
    refusals: Rejections
    policies: PolicySet

    def stand(self, record: DatasetRecord, policies: PolicySet | None = None) -> TrustStanding:
        """Say how a dataset stands under policies (None: those in force), from what is known about it today."""
        rule, decision = self._judge(record, policies or self.policies)
        return TrustStanding(record, rule, decision, find_partial(self.home.store, record))

    def _judge(self, record: DatasetRecord, policies: PolicySet) -> tuple[AcceptRule, Decision]:
        obstacle = Disputes(self.home.store).find_obstacle(record.id, name=record.name)
        if obstacle is not None:
            return AcceptRule(name="EQUIV-9"), Decision(False, None, False, obstacle)
        if record.origin is Origin.OWN:
            return AcceptRule(name="own"), Decision(True, Trust.OWN, False, "written by this node")
        rule = policies.find_rule(record.name, record.id, record.origin_url or "")
        try:
            KeyLogs(self.home.store).require_kept(record)
        except RejectedError as error:
            return AcceptRule(name="KEY-14"), Decision(False, None, False, str(error))
        signed = record.pinned_key is not None
        try:
            keys = KeyLogs(self.home.store).get_history(record.id)
            chain = check_stored(self.home.store, record, keys=keys, signed=signed)
        except OdfError as error:
            return rule, Decision(False, None, False, f"what is held is damaged: {error}")
        key = self.home.keys.find_node_key()
        others = RemoteStatements(self.home.store, policies, DidKey(key.public_key()) if key else None)
        witnesses = others.witnesses(chain, ())
        ports = chain, self.home.store, self.engines
        proof = gather_proof(*ports, signed=signed, witnesses=witnesses, with_digests=bool(rule.engines))
        if record.trust is Trust.REEXECUTED:
            # It was done; that inputs have gone since takes nothing away.
            proof = replace(proof, engine_available=True, inputs_accepted=True)
        named = policies.names_identity(record.id)
        proof = replace(proof, is_new=not named, identity_named=named)
        # Of files that nobody looked at nothing is claimed, whatever the rule would say of them.
        unchecked = find_unchecked(self.home.store, record)
        if unchecked is None:
            return rule, decide(rule, proof)
        return rule, decide_on_metadata(rule, proof, has_files=unchecked.has_files)

    def list_changes(self, policies: PolicySet) -> list[TrustChange]:
        """Find the datasets that other policies would judge otherwise."""
        changes = []
        for record in self.home.store.list_datasets():
            before, after = self.stand(record), self.stand(record, policies)
            if (before.decision.accepted, before.decision.ground) != (after.decision.accepted, after.decision.ground):
                changes.append(TrustChange(before, after))
        return changes

    def describe_dataset(self, record: DatasetRecord) -> dict[str, Any]:
        """Give everything that is known about what a dataset rests on, as plain values."""
        return {
            **self.stand(record).to_json(),
            "query": describe_reach(record, self.home.store, self.engines.engine_files),
            "origin": record.origin_url,
            "pinnedKey": str(record.pinned_key) if record.pinned_key else None,
            "keyWarnings": KeyReports(self.home.store).list_doubts(record),
            "acceptances": [
                {"head": str(item.head.hash), "source": item.source_url, **describe_acceptance(item)}
                for item in self.home.store.iter_acceptances(record.id)
            ],
            "statements": list(self._iter_statements([record], lambda _key: True)),
        }

    def describe_auditor(self, auditor: Auditor) -> dict[str, Any]:
        """Say what an auditor stated about datasets held here, and what would change without it."""
        records = self.home.store.list_datasets()
        return {
            "auditor": auditor.name,
            "key": str(auditor.key),
            "rules": [r.name for r in self._rules() if auditor in r.auditors],
            "statements": list(self._iter_statements(records, lambda key: key == auditor.key)),
            "withoutIt": [change.to_json() for change in self.list_changes(_without(self.policies, auditor))],
        }

    def describe_peer(self, url: str) -> dict[str, Any]:
        """Say who answers at an address, what was taken from there, and what was rejected."""
        below = url.rstrip("/")
        peers = [
            {"url": p.url, "nodeKey": str(p.node_key) if p.node_key else None, "firstSeen": str(p.first_seen)}
            for p in self.home.store.list_peers()
            if p.url == below or p.url.startswith(below + "/")
        ]
        taken: list[dict[str, Any]] = []
        for record in self.home.store.list_datasets():
            for item in self.home.store.iter_acceptances(record.id):
                source = without_mark(item.source_url or "")
                if source == below or source.startswith(below + "/"):
                    taken.append({"dataset": record.name, **describe_acceptance(item)})
        refused = [
            {key: report.get(key) for key in ("id", "dataset", "refusedAt", "rule", "reason")}
            for report in self.refusals.iter_reports()
            if without_mark(str(report.get("source", ""))).startswith(below)
        ]
        if not (peers or taken or refused):
            raise UnknownDatasetError(f"this node knows nothing of {url}")
        return {"peer": url, "known": peers, "taken": taken, "refused": refused}

    def find_auditor(self, text: str) -> Auditor | None:
        """Return the auditor that a name of the policies or a ``did:key`` means, None where it is neither."""
        named = next((auditor for auditor in self.policies.auditors if auditor.name == text), None)
        if named is not None or not text.startswith("did:key:"):
            return named
        try:
            key = DidKey.parse(text)
        except MalformedError:
            return None
        return self.policies.find_auditor(key) or Auditor("no auditor of the policies", key)

    def _rules(self) -> list[AcceptRule]:
        return [*(item.rule for item in self.policies.rules), self.policies.default]

    def _iter_statements(
        self, records: "list[DatasetRecord] | tuple[DatasetRecord, ...]", wanted: Callable[[DidKey], bool]
    ) -> Iterator[dict[str, Any]]:
        for record in records:
            for item in self.home.store.iter_attestations(record.id):
                if wanted(item.attester):
                    known = self.policies.find_auditor(item.attester)
                    yield {
                        "dataset": record.name,
                        "by": known.name if known else None,
                        "key": str(item.attester),
                        "blocks": [item.first_sequence_number, item.last_sequence_number],
                        "says": describe_attestation(item.raw),
                        "id": str(item.id),
                    }


def _without(policies: PolicySet, auditor: Auditor) -> PolicySet:
    """Give the policies in which an auditor's word counts no more; thresholds stay."""

    def strip(rule: AcceptRule) -> AcceptRule:
        return replace(rule, auditors=tuple(each for each in rule.auditors if each != auditor))

    rules = tuple(replace(item, rule=strip(item.rule)) for item in policies.rules)
    return PolicySet(rules, strip(policies.default), tuple(each for each in policies.auditors if each != auditor))
