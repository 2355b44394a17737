"""The steps of a transform: queries in order, each but the last named for those after it.

Source: ODF "TransformSql"; clause GATE-1.
"""

from odf_engines.errors import InvalidQueryError
from odf_protocol.events import SqlQueryStep, TransformSql

OUTPUT = "__output__"  # how other engines name the result of the last step


def steps_of(transform: TransformSql) -> tuple[SqlQueryStep, ...]:
    """Return the queries in order.

    Raises:
        InvalidQueryError: None, or one that later steps cannot name.
    """
    steps = transform.queries or ()
    if transform.query is not None:
        steps = (*steps, SqlQueryStep(query=transform.query))
    if not steps:
        raise InvalidQueryError("a transform has at least one query")
    for step in steps[:-1]:
        if step.alias is None:
            raise InvalidQueryError("only the last query may be without an alias")
    return steps
