"""A merge strategy of another package, as a dataset's rules declare it beside the ODF strategy of its sources.

Source: clause ING-56 in ``spec/ingest.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_engines.ingest_parts import StrategyCall
from odf_engines.strategies.registry import ADDED_STRATEGIES, BrokenStrategyError, load_strategy
from odf_node.ingest.declared_plug_ins import reject
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import MergeStrategy
from odf_protocol.manifest.errors import find_nearest
from odf_protocol.manifest.nodes import MapNode, Node, ScalarNode, describe

_FORM: Final = "a merge strategy of a package, such as 'merge: {kind: KeepMissing, version: \"1\"}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStrategy:
    """A merge strategy as it was declared, with its place in the text."""

    name: str
    version: str
    node: Node
    path: str

    def find_call(self) -> StrategyCall:
        """Return what the engine is asked to call.

        Raises:
            UnsupportedError: There is no such strategy here, or it is one of another version.
            BrokenStrategyError: It cannot be used.
        """
        place = ADDED_STRATEGIES.find_place(self.name)
        if place is None:
            supported = ", ".join(ADDED_STRATEGIES.installed()) or "those of ODF; no package here brings one"
            raise UnsupportedError("merge strategy", found=self.name, supported=supported)
        call = StrategyCall(name=self.name, module=place[0], attribute=place[1], version=self.version)
        load_strategy(call)
        return call


def read_strategy(node: Node, path: str) -> DeclaredStrategy:
    """Read a merge strategy.

    Raises:
        ManifestError: It is none.
    """
    if not isinstance(node, MapNode):
        reject(node, path, _FORM, describe(node))
    entries = {key.text: value for key, value in node.entries}
    for key, _ in node.entries:
        if key.text not in {"kind", "version"}:
            reject(key, f"{path}.{key.text}", "kind or version", key.text, find_nearest(key.text, ("kind", "version")))
    texts = []
    for name in ("kind", "version"):
        value = entries.get(name)
        if not isinstance(value, ScalarNode) or value.is_null or not value.text:
            reject(value or node, f"{path}.{name}", _FORM, describe(value) if value else "nothing")
        texts.append(value.text)
    return DeclaredStrategy(name=texts[0], version=texts[1], node=node, path=path)


def check_strategy(declared: DeclaredStrategy, merges: Sequence[MergeStrategy]) -> None:
    """Reject a strategy that is not installed in this version, or does not stand beside the one of every source.

    Args:
        declared: The strategy.
        merges: Those of ODF that the dataset's sources declare.

    Raises:
        ManifestError: What is wrong first, with its place.
    """
    known = ADDED_STRATEGIES.installed()
    if declared.name not in known:
        expected = f"a merge strategy that a package brings here ({', '.join(known) or 'none is installed'})"
        reject(declared.node, f"{declared.path}.kind", expected, declared.name, find_nearest(declared.name, known))
    try:
        event = load_strategy(declared.find_call()).event
    except (BrokenStrategyError, UnsupportedError) as error:
        reject(declared.node, declared.path, _FORM, str(error))
    for merge in merges:
        if type(merge) is not event:
            expected, found = (each.__name__.removeprefix("MergeStrategy") for each in (event, type(merge)))
            reject(declared.node, declared.path, f"{declared.name} beside sources that merge by {expected}", found)
