"""Which engines the preprocess step of an ingest may name: the one that ingests, and those that run queries for it.

Nothing is run on another engine in the place of the one that is named.

Source: spec/ingest.md ING-7; clause ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

from odf_engines.engine import Offer
from odf_engines.errors import EngineMissingError
from odf_engines.registry import engines_offering

__all__ = ["find_preprocess_engine"]


def find_preprocess_engine(name: str, ingest: str) -> str:
    """Return the engine that runs a preprocess step.

    Args:
        name: As the step names it; case does not matter.
        ingest: The engine that ingests.

    Raises:
        EngineMissingError: It is none of those that are here.
    """
    here = tuple(sorted({ingest, *engines_offering(Offer.PREPROCESS)}))
    for each in here:
        if each.lower() == name.lower():
            return each
    raise EngineMissingError(name, here, purpose="preprocess")
