"""How far the query of a derivative reaches: over all rows of its inputs, or over those that are new in a step.

Engines of the first kind say it of each query (VIEW-1). Of one of the second kind it holds whatever the query, and
whoever reads its derivatives has to know it.

Source: clauses FUSION-5 and FUSION-10 in ``spec/extensions/engine-contract.md``.
"""

from odf_engines.engine import Offer
from odf_engines.errors import EngineMissingError
from odf_engines.registry import engines_offering, get_engine
from odf_node.datasets.chains import load_view
from odf_node.engines.finding import choose_build, get_engine_here
from odf_node.ports import DatasetRecord
from odf_node.ports.chains import ChainStore
from odf_node.ports.engines import EngineShelf
from odf_node.ports.errors import HomeCorruptError
from odf_protocol.enums import DatasetKind

PER_STEP = (
    "per step: each one by itself, over what its inputs gained; aggregates, joins, windows and limits are of one step"
)


def describe_reach(record: DatasetRecord, chains: ChainStore, shelf: EngineShelf | None) -> str | None:
    """Say of a derivative whose engine is not told about earlier rows what that means, and what would mean all of them.

    Returns:
        A line; None for any other dataset, and where the engine is not here.
    """
    transform = load_view(chains, record.id).transform if record.kind is DatasetKind.DERIVATIVE else None
    if transform is None:
        return None
    try:
        if not get_engine_here(choose_build(transform.transform, None, shelf), shelf).is_stepwise:
            return None
    except (EngineMissingError, HomeCorruptError):
        return None
    whole = [name for name in engines_offering(Offer.TRANSFORM) if not get_engine(name).is_stepwise]
    if not whole:
        return PER_STEP
    return f"{PER_STEP}; a dataset of the same query with 'engine: {whole[0]}' is over all rows, and corrected"
