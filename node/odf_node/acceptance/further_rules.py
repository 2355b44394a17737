"""Rules for chains of others that this node alone has: plug-ins of the group ``odf_node.chain_rules``.

They add to the rules of ``spec/chain.md``, which no plug-in takes away from, and judge what is offered to this node
before it is accepted. What a home holds, and what it writes, they do not judge: other nodes do not know them.

Source: clause PLUG-24 in ``spec/plug-ins.md``.
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Final

from odf_engines.plug_in_names import PlugInNames
from odf_engines.registry import list_lacking_extras
from odf_node.errors import UsageError
from odf_node.plug_ins import list_failures, load_plug_ins, note_failure
from odf_protocol.chain.rule import Rule
from odf_protocol.chain.rules import FIRST_BLOCK_RULES, RULES

GROUP: Final = "odf_node.chain_rules"


def list_further_rules() -> tuple[Rule, ...]:
    """List them, in the order of the names of their entry points.

    Raises:
        UsageError: One cannot be used. Without it chains would be taken that the operator wants to have rejected, so
            none is taken.
    """
    rules = _load_rules()
    for failure in list_failures():
        if failure.group == GROUP:
            raise UsageError(
                f"the chain rule '{failure.name}' of package '{failure.package}' cannot be used: {failure.reason}; "
                "until it works or is uninstalled, nothing of others is taken"
            )
    return rules


@cache
def _load_rules() -> tuple[Rule, ...]:
    families = {rule.clause.partition("-")[0] for rule in (*FIRST_BLOCK_RULES, *RULES)}
    found = load_plug_ins(GROUP, Rule)
    for point in entry_points(group=GROUP):
        if point.name not in found or PlugInNames(GROUP, {}).get_point(point.name) != point:
            lack = "what its extra brings is not installed"
            named_twice = "another package has a rule of this name"
            note_failure(GROUP, point.name, ValueError(lack if list_lacking_extras(point) else named_twice))
    for name, rule in found.items():
        if rule.clause.partition("-")[0] in families:
            note_failure(GROUP, name, ValueError(f"{rule.clause} is a clause of the specification's"))
    return tuple(found.values())
