"""Taking a transform through the gate: each step is a query over the inputs and the steps before it.

Source: clauses GATE-1, FUSION-3 and FUSION-4 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odf_engines.datafusion.context import plan_query
from odf_engines.datafusion.gate import check_plan
from odf_engines.datafusion.relations import register
from odf_engines.errors import InvalidQueryError
from odf_engines.host.queries import OUTPUT, steps_of
from odf_protocol.events import TransformSql

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext


def plan_transform(
    context: "SessionContext", transform: TransformSql, inputs: "Mapping[str, DataFrame]"
) -> "DataFrame":
    """Return the rows of the last step, not computed yet.

    Args:
        context: Without tables.
        transform: The queries.
        inputs: Rows of every input by its alias.

    Raises:
        InvalidQueryError, NotReplayableError: The gate's refusal.
    """
    if transform.temporal_tables:
        raise InvalidQueryError("temporal tables need stream processing, which this engine does not have")
    known = list(inputs)
    for alias, rows in inputs.items():
        register(context, alias, rows)
    *before, last = steps_of(transform)
    for step in before:
        assert step.alias is not None
        if step.alias in known or step.alias == OUTPUT:
            raise InvalidQueryError(f"two inputs or steps are called {step.alias}")
        register(context, step.alias, _plan(context, step.query))
        known.append(step.alias)
    register(context, OUTPUT, _plan(context, last.query))
    return context.table(OUTPUT)


def _plan(context: "SessionContext", sql: str) -> "DataFrame":
    # Names with dots stand in quotes: the other implementation reads them so too.
    rows = plan_query(context, sql)
    check_plan(rows)
    return rows
