"""One error out of a group of tasks that failed together."""

from odf_protocol.errors import OdfError


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that says most: one of our tree if there is any, else the first."""
    leaves: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop(0)
        if isinstance(error, BaseExceptionGroup):
            pending.extend(error.exceptions)
        else:
            leaves.append(error)
    # A cancelled or unexpected leaf must not hide behind an ordinary one.
    unexpected = [leaf for leaf in leaves if not isinstance(leaf, OdfError)]
    return (unexpected or leaves)[0]
