"""Whether an analysed query still is what its text said: rows of declared relations, and Spark's own expressions.

Names are checked before analysis; this looks at what they became. Nothing should get here that is refused here: it is
the net below a name that the analyser resolves in a way nobody thought of.

Source: clause GATE-10.
"""

from collections.abc import Collection
from typing import Any

from odf_engines.errors import InvalidQueryError
from odf_engines.spark.gate.trees import class_name, items, iter_expressions, iter_plan, shown, simple_name, view_name

# Relations that hold no rows but those in the text of the query, or none at all.
_OWN_ROWS = frozenset({"CTERelationRef", "LocalRelation", "OneRowRelation", "Range", "EmptyRelation"})

_KNOWN_PACKAGES = ("org.apache.spark.sql.catalyst.expressions.", "org.apache.spark.sql.catalyst.plans.")

# In a known package, and yet code from outside the query.
_FOREIGN_CODE = frozenset(
    {"CallMethodViaReflection", "TryReflect", "ScalaUDF", "PythonUDF", "PythonUDAF", "PythonUDTF", "ScalaUDAF"}
)


def check_analysed(plan: Any, relations: Collection[str]) -> None:
    """Check an analysed plan down to the declared relations.

    Args:
        plan: Analysed; its views are not yet replaced by what they stand for.
        relations: Names of views that it may read; what is below them is ours.

    Raises:
        InvalidQueryError: It reads something else, or runs code that is not Spark's own.
    """
    for node in iter_plan(plan, relations):
        view, name = view_name(node), simple_name(node)
        if view in relations:
            continue
        if view is not None or (name not in _OWN_ROWS and not items(node.children())):
            raise InvalidQueryError(f"it reads {view or name}, which is no declared relation")
        for expression in iter_expressions(node):
            if simple_name(expression) in _FOREIGN_CODE or not class_name(expression).startswith(_KNOWN_PACKAGES):
                raise InvalidQueryError(f"{shown(expression)} runs code that is not the engine's own")
