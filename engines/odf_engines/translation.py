"""Queries that were written for another engine, translated by a plug-in: what comes out, and where it is found.

An entry point of the group ``odf_dialects`` has the name of an engine whose SQL it reads, in lower case, and leads to
a function ``(transform, *, where, is_preprocess)`` that returns a ``Translation``: of the transform as a manifest
declares it, with ``where`` it stands for messages. ``is_preprocess``: its queries prepare an ingest, whose rows both
engines see alone. It raises a ``MalformedError`` where a query cannot be read, or has a part without a counterpart.

Source: clause PLAN-17 in ``spec/transform.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from odf_engines.plug_in_names import DIALECTS
from odf_protocol.errors import MalformedError
from odf_protocol.events import TransformSql


@dataclass(frozen=True, slots=True)
class Translation:
    """A transform that was translated.

    Attributes:
        transform: For the engine that it was translated for.
        engine: That the query was written for.
        difference: Of the queries before and after, line by line, as ``diff -u`` writes it.
        doubts: What may mean something else now.
    """

    transform: TransformSql
    engine: str
    difference: tuple[str, ...]
    doubts: tuple[str, ...]


Translate = Callable[..., Translation]


def find_translation(engine: str, *, where: str) -> Translate:
    """Find what translates the SQL of an engine.

    Raises:
        MalformedError: Nothing that is installed does; ``where`` the query stands is said.
    """
    name = engine.lower()
    if name not in DIALECTS.installed():
        known = f"an engine whose SQL is known ({DIALECTS.describe_installed()})"
        raise MalformedError("transform", where=where, expected=known, found=engine)
    translate: Translate = DIALECTS.get_point(name).load()
    return translate
