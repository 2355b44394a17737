"""What a change of a dataset would lead to, and what that cost the last time. Pure.

Source: clause CONVERGE-5 in ``spec/plug-ins/convergence.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from odf_convergence.graph import ActionCost, DatasetGraph, GraphDataset


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change would lead to.

    Attributes:
        changed: What would change.
        own: What this node would compute again, inputs first.
        others: What others would compute, inputs first.
        seconds: That the newest actions of ``own`` took, all together, as far as it is known.
        unknown: How many of these it is not known of.
    """

    changed: tuple[GraphDataset, ...]
    own: tuple[GraphDataset, ...]
    others: tuple[GraphDataset, ...]
    seconds: float
    unknown: int

    @property
    def cost(self) -> ActionCost:
        """All of it together."""
        rows = [each.cost.rows for each in self.own if each.cost.rows is not None]
        return ActionCost(seconds=self.seconds, rows=sum(rows))


def find_impact(graph: DatasetGraph, keys: Iterable[str]) -> Impact:
    """Find what rests on datasets, and what it costs to compute it again."""
    changed = set(keys)
    reached = graph.list_below(changed) - changed
    below = [graph.datasets[key] for key in graph.order if key in reached]
    own = tuple(each for each in below if each.is_own)
    known = [each.cost.seconds for each in own if each.cost.seconds is not None]
    return Impact(
        tuple(graph.datasets[key] for key in graph.order if key in changed),
        own,
        tuple(each for each in below if not each.is_own),
        sum(known),
        len(own) - len(known),
    )
