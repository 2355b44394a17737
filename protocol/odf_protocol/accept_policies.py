"""Accept policies: rules for datasets and peers, and which of them is in force.

The first rule that matches a dataset and the peer that offers it is the one in force; the default stands at the end.
Choosing is here, deciding is in ``policy``, reading what people write in ``accept_policy_text``.

Source: clauses POLICY-1 to POLICY-9 in ``spec/extensions/policies.md``.
"""

from dataclasses import dataclass
from typing import Final

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.names import fits_pattern
from odf_protocol.policy import AcceptRule, Auditor
from odf_protocol.public_addresses import without_mark


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule with what it is for: name patterns and identities of datasets, prefixes of addresses; empty means all."""

    rule: AcceptRule
    patterns: tuple[str, ...] = ()
    identities: tuple[DatasetId, ...] = ()
    peers: tuple[str, ...] = ()

    def matches(self, name: str, dataset_id: DatasetId, source_url: str) -> bool:
        """Say whether the rule is for a dataset that a peer offers (POLICY-4)."""
        if (self.patterns or self.identities) and not (
            dataset_id in self.identities or any(fits_pattern(pattern, name) for pattern in self.patterns)
        ):
            return False
        return not self.peers or any(_is_below(source_url, peer) for peer in self.peers)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All rules, in order, with the default at the end; ``auditors`` are all that the file names."""

    rules: tuple[PolicyRule, ...]
    default: AcceptRule
    auditors: tuple[Auditor, ...] = ()

    def find_rule(self, name: str, dataset_id: DatasetId, source_url: str) -> AcceptRule:
        """Return the first rule for a dataset that a peer offers under a name; the default where there is none."""
        address = without_mark(source_url)  # who named it is no matter here: it is what was connected to
        return next((r.rule for r in self.rules if r.matches(name, dataset_id, address)), self.default)

    def names_identity(self, dataset_id: DatasetId) -> bool:
        """Say whether any rule names this identity: then meeting it is no first contact (POLICY-5)."""
        return any(dataset_id in rule.identities for rule in self.rules)

    def find_auditor(self, key: DidKey) -> Auditor | None:
        """Return what the file calls a node, or None."""
        return next((auditor for auditor in self.auditors if auditor.key == key), None)


NO_POLICIES: Final = PolicySet((), AcceptRule.of(None))
"""What is in force where there is no file."""


def _is_below(url: str, prefix: str) -> bool:
    """Say whether an address is the prefix or something below it; ``http://a`` is no prefix of ``http://ab``."""
    url = url.removeprefix("odf+")
    if not url.startswith(prefix):
        return False
    return prefix.endswith(("/", ":")) or url[len(prefix) :][:1] in {"", "/"}
