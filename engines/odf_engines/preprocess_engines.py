"""Which engines the preprocess step of an ingest may name: the one that ingests, and those that run queries for it.

Nothing is run on another engine in the place of the one that is named.

Source: spec/ingest.md ING-7; clause ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

from odf_engines.engine import Offer
from odf_engines.errors import EngineMissingError
from odf_engines.registry import engines_offering, find_remedy, installed_engines


def find_preprocess_engine(name: str, ingest: str) -> str:
    """Return the engine that runs a preprocess step.

    Args:
        name: As the step names it; case does not matter.
        ingest: The engine that ingests, and runs queries of its own kind; it may not be here.

    Raises:
        EngineMissingError: It is none of those that are here.
    """
    own = {each for each in installed_engines() if each.lower() == ingest.lower()}
    here = tuple(sorted({*engines_offering(Offer.PREPROCESS), *own}))
    for each in here:
        if each.lower() == name.lower():
            return each
    raise EngineMissingError(name, here, purpose="preprocess", remedy=find_remedy(name))
