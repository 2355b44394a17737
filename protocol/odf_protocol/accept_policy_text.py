"""Accept policies as people write them: a YAML file of rules, read strictly, with the place of every mistake.

Source: clauses POLICY-1 to POLICY-6 and POLICY-10 in ``spec/extensions/policies.md``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from odf_protocol.accept_policies import PolicyRule, PolicySet
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import OdfError
from odf_protocol.manifest.errors import ManifestError, Path, Place, find_nearest, list_words
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, describe
from odf_protocol.manifest.yaml_text import parse_yaml
from odf_protocol.multihash import Multihash
from odf_protocol.policy import AcceptRule, Auditor, Policy

MAX_POLICY_BYTES: Final = 1024 * 1024  # guess: thousands of rules
_KIND: Final = "AcceptPolicies"
_WORDS: Final[Mapping[str, Policy]] = {
    "re-executed": Policy.REEXECUTE,
    "attested": Policy.ATTESTED,
    "integrity": Policy.INTEGRITY,
    "unsigned": Policy.UNSIGNED,
}
"""What ``accept`` may say (POLICY-3)."""
_MAX_AUDITORS: Final = 1000  # guess
_DIGEST_START: Final = "f16"  # of a multihash in base16, which no name of an engine is taken for


def parse_policies(text: str, *, source_name: str) -> PolicySet:
    """Read a file of policies.

    Args:
        text: Of the file.
        source_name: Its name, for messages and for the names of rules.

    Raises:
        ManifestError: A mistake, with its line and column.
    """
    if len(text) > MAX_POLICY_BYTES:
        raise ManifestError(source_name, 1, 1, expected=f"at most {MAX_POLICY_BYTES} characters", found=f"{len(text)}")
    documents = parse_yaml(text, source_name=source_name)
    if len(documents) != 1:
        raise ManifestError(source_name, 1, 1, expected="one document", found=f"{len(documents)}")
    return _Reader(Place(source_name)).read_set(documents[0])


class _Reader:
    """Reads one file; every failure names its place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._auditors: dict[str, Auditor] = {}

    def read_set(self, node: Node) -> PolicySet:
        fields = self._fields(node, None, ("kind", "version", "auditors", "rules", "default"), ("kind", "version"))
        for name, value in (("kind", _KIND), ("version", "1")):
            if self._text(fields[name], (None, name)) != value:
                self._place.fail(fields[name], (None, name), value, describe(fields[name]))
        if "auditors" in fields:
            self._read_auditors(fields["auditors"], (None, "auditors"))
        rules = []
        if "rules" in fields:
            for index, item in enumerate(self._list(fields["rules"], (None, "rules"))):
                rules.append(self._read_rule(item, ((None, "rules"), index), f"rule {index + 1}"))
        default = AcceptRule.of(None)
        if "default" in fields:
            default = self._read_rule(fields["default"], (None, "default"), "the default", is_default=True).rule
        return PolicySet(tuple(rules), default, tuple(self._auditors.values()))

    def _read_auditors(self, node: Node, path: Path) -> None:
        if not isinstance(node, MapNode):
            self._place.fail(node, path, "a map from names to did:key identities", describe(node))
        if len(node.entries) > _MAX_AUDITORS:
            self._place.fail(node, path, f"at most {_MAX_AUDITORS} auditors", f"{len(node.entries)}")
        for key, value in node.entries:
            auditor = Auditor(key.text, self._parsed(DidKey.parse, value, (path, key.text), "a did:key"))
            twin = next((known.name for known in self._auditors.values() if known.key == auditor.key), None)
            if twin is not None:
                # One node under two names would count twice.
                self._place.fail(value, (path, key.text), "a node of its own", f"that of {twin!r}")
            self._auditors[key.text] = auditor

    def _read_rule(self, node: Node, path: Path, number: str, *, is_default: bool = False) -> PolicyRule:
        known: tuple[str, ...] = ("accept", "auditors", "threshold", "engines", "firstContact", "rowOrder")
        if not is_default:
            known = (*known, "datasets", "peers")
        fields = self._fields(node, path, known, ("accept",))
        word = self._text(fields["accept"], (path, "accept"))
        if word not in _WORDS:
            self._place.fail(
                fields["accept"], (path, "accept"), list_words(_WORDS), repr(word), find_nearest(word, _WORDS)
            )
        policy = _WORDS[word]
        auditors, threshold = self._read_votes(node, path, fields, policy)
        patterns, identities = self._read_datasets(fields, path)
        contact = self._text(fields["firstContact"], (path, "firstContact")) if "firstContact" in fields else "allow"
        if contact not in {"allow", "refuse"}:
            self._place.fail(fields["firstContact"], (path, "firstContact"), "allow or reject", repr(contact))
        rule = AcceptRule(
            name=f"{number} of {self._place.source_name} (line {node.line})",
            policy=policy,
            auditors=auditors,
            threshold=threshold,
            engines=self._read_engines(fields, path, policy),
            first_contact=contact == "allow",
            proves_order=self._read_order(fields, path, policy),
        )
        return PolicyRule(rule, patterns, identities, self._read_peers(fields, path))

    def _read_votes(
        self, node: Node, path: Path, fields: Mapping[str, Node], policy: Policy
    ) -> tuple[tuple[Auditor, ...], int]:
        for name in ("auditors", "threshold"):
            if policy is not Policy.ATTESTED and name in fields:
                self._place.fail(fields[name], (path, name), "this field with accept: attested only", name)
        if policy is not Policy.ATTESTED:
            return (), 0
        chosen = list(self._auditors)
        if "auditors" in fields:
            chosen = []
            for index, item in enumerate(self._list(fields["auditors"], (path, "auditors"))):
                here: Path = ((path, "auditors"), index)
                name = self._text(item, here)
                if name not in self._auditors:
                    nearest = find_nearest(name, self._auditors)
                    self._place.fail(item, here, "a name from the list of auditors", repr(name), nearest)
                if name in chosen:
                    self._place.fail(item, here, "each auditor once", repr(name))
                chosen.append(name)
        if not chosen:
            self._place.fail(node, path, "auditors whose word counts", "none")
        if "threshold" not in fields:
            self._place.fail(node, path, "the field 'threshold': how many of the auditors are enough", "none")
        number = self._text(fields["threshold"], (path, "threshold"))
        if not (number.isascii() and number.isdigit() and len(number) < 5 and 1 <= int(number) <= len(chosen)):
            self._place.fail(fields["threshold"], (path, "threshold"), f"a number from 1 to {len(chosen)}", number)
        return tuple(self._auditors[name] for name in chosen), int(number)

    def _read_engines(self, fields: Mapping[str, Node], path: Path, policy: Policy) -> tuple[str, ...]:
        if policy is not Policy.REEXECUTE and "engines" in fields:
            self._place.fail(
                fields["engines"], (path, "engines"), "this field with accept: re-executed only", "engines"
            )
        engines = []
        for text, item, here in self._words(fields, "engines", path):
            if text.startswith(_DIGEST_START):
                engines.append(str(self._parsed(Multihash.parse, item, here, "the digest of an engine")))
            else:
                engines.append(text.lower())
        return tuple(engines)

    def _read_order(self, fields: Mapping[str, Node], path: Path, policy: Policy) -> bool:
        if "rowOrder" not in fields:
            return False
        node, here = fields["rowOrder"], (path, "rowOrder")
        if policy not in {Policy.REEXECUTE, Policy.UNSIGNED}:
            self._place.fail(node, here, "this field with accept: re-executed or unsigned", "rowOrder")
        if (word := self._text(node, here)) not in {"any", "proved"}:
            self._place.fail(node, here, "any or proved", repr(word))
        return word == "proved"

    def _read_datasets(self, fields: Mapping[str, Node], path: Path) -> tuple[tuple[str, ...], tuple[DatasetId, ...]]:
        patterns: list[str] = []
        identities: list[DatasetId] = []
        for text, item, here in self._words(fields, "datasets", path):
            if text.startswith("did:"):
                identities.append(self._parsed(DatasetId.parse, item, here, "a did:odf"))
            else:
                patterns.append(text)
        return tuple(patterns), tuple(identities)

    def _read_peers(self, fields: Mapping[str, Node], path: Path) -> tuple[str, ...]:
        peers = []
        for text, item, here in self._words(fields, "peers", path):
            if not text.startswith(("http://", "https://", "file:///", "push:")):
                # A node says itself which did:key it has; an address is what was connected to.
                self._place.fail(item, here, "an address (http://, https://, file:///) or push:NAME", repr(text))
            peers.append(text)
        return tuple(peers)

    def _words(self, fields: Mapping[str, Node], name: str, path: Path) -> list[tuple[str, Node, Path]]:
        if name not in fields:
            return []
        items = self._list(fields[name], (path, name))
        if not items:
            # An empty list would mean everything here and nothing to its reader.
            self._place.fail(fields[name], (path, name), "at least one entry, or no such field", "an empty list")
        return [
            (self._text(item, ((path, name), index)), item, ((path, name), index)) for index, item in enumerate(items)
        ]

    def _fields(self, node: Node, path: Path, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Node]:
        if not isinstance(node, MapNode):
            self._place.fail(node, path, f"a map with {list_words(known)}", describe(node))
        for key, _ in node.entries:
            if key.text not in known:
                self._place.fail(key, path, list_words(known), repr(key.text), find_nearest(key.text, known))
        fields = {key.text: value for key, value in node.entries}
        for name in needed:
            if name not in fields:
                self._place.fail(node, path, f"the field {name!r}", "none")
        return fields

    def _list(self, node: Node, path: Path) -> list[Node]:
        if not isinstance(node, ListNode):
            self._place.fail(node, path, "a list", describe(node))
        return node.items

    def _text(self, node: Node, path: Path) -> str:
        if not isinstance(node, ScalarNode) or node.is_null:
            self._place.fail(node, path, "a word", describe(node))
        return node.text

    def _parsed(self, parse: Callable[[str], Any], node: Node, path: Path, expected: str) -> Any:
        try:
            return parse(self._text(node, path))
        except ManifestError:
            raise
        except OdfError as error:
            self._place.fail(node, path, expected, str(error))
