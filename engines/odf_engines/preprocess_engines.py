"""Which engines a preprocess step of an ingest may name.

Its queries run on Spark, in the dialect of the engine that is named; nothing is run on another one in its place.

Source: spec/ingest.md ING-7.
"""

from typing import Final

from odf_engines.errors import EngineMissingError

__all__ = ["PREPROCESS_ENGINES", "find_preprocess_engine"]

PREPROCESS_ENGINES: Final = ("datafusion", "spark")


def find_preprocess_engine(name: str) -> str:
    """Return the name, in small letters, of the engine whose dialect a preprocess step is written in.

    Raises:
        EngineMissingError: It is none of those that are here.
    """
    if name.lower() not in PREPROCESS_ENGINES:
        raise EngineMissingError(name, PREPROCESS_ENGINES, purpose="preprocess")
    return name.lower()
