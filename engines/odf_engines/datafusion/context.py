"""A context of DataFusion for one request: fixed settings, bounded memory, and only the functions that may be called.

Functions that a transform may not call are taken out, so they cannot be reached however a query spells them: by an
alias, inside a subquery, or as a word of SQL that stands for one.

Source: clauses FUSION-2, FUSION-3 and FUSION-4 in ``spec/extensions/engine-contract.md``.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions

from odf_engines.datafusion.functions import AGGREGATES, FUNCTIONS, REJECTED, TABLE_FUNCTIONS, WINDOWS
from odf_engines.datafusion.settings import SETTINGS
from odf_engines.errors import EngineError, EngineFailureError, InvalidQueryError, NotReproducibleError

if TYPE_CHECKING:
    from datafusion import DataFrame, Expr

_SHARE = 2  # of the memory; the other half is for Arrow, Parquet and Python

# What the engine cannot help: files that are broken, or a machine that is.
_NOT_OF_THE_QUERY = ("Object Store error", "IO error", "Parquet error", "External error")
_SHORTAGE = "Resources exhausted"
_NOT_THERE = re.compile(r"""(?:Invalid function '|No field named "?)(\w+)""")


def make_context(memory_bytes: int, *, is_repeatable: bool, spill: Path | None = None) -> "SessionContext":
    """Return a context without tables.

    Args:
        memory_bytes: Of the session.
        is_repeatable: Whether only functions may be called whose results others can repeat.
        spill: Folder for what memory does not hold; None: nothing is written to disk, as what spills is merged in
            another order.
    """
    memory, pool_bytes, settings = RuntimeEnvBuilder(), memory_bytes // _SHARE, dict(SETTINGS)
    if spill is None:
        memory = memory.with_greedy_memory_pool(pool_bytes).with_disk_manager_disabled()
    else:
        memory = memory.with_fair_spill_pool(pool_bytes).with_disk_manager_specified(str(spill))
        # With them, some conditions over small files end at an assertion of the optimiser's guess of rows that pass.
        settings["datafusion.execution.collect_statistics"] = "false"
    context = SessionContext(SessionConfig(settings), memory)
    if is_repeatable:
        for name in set(context.udfs()) - FUNCTIONS:
            context.deregister_udf(name)
        for name in set(context.udafs()) - AGGREGATES:
            context.deregister_udaf(name)
        for name in set(context.udwfs()) - WINDOWS:
            context.deregister_udwf(name)
        for name in TABLE_FUNCTIONS:
            context.deregister_udtf(name)
    return context


def plan_query(context: "SessionContext", sql: str) -> "DataFrame":
    """Return a query's rows, not computed yet.

    Raises:
        InvalidQueryError: It is no query, or names what is not there.
        NotReproducibleError: It calls what nobody could repeat.
    """
    if "\0" in sql:
        # As the name of a column it would end the process.
        raise InvalidQueryError("a query has no character U+0000")
    options = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    with _planning():
        return context.sql_with_options(sql, options)


def parse_expression(rows: "DataFrame", sql: str) -> "Expr":
    """Return one expression over the columns of rows, not computed yet.

    Raises:
        InvalidQueryError, NotReproducibleError: As ``plan_query``; or it is more, or less, than one expression.
    """
    if "\0" in sql:
        raise InvalidQueryError("an expression has no character U+0000")
    with _planning():
        return rows.parse_sql_expr(sql)


@contextmanager
def _planning() -> Iterator[None]:
    try:
        with query_errors():
            yield
    except InvalidQueryError as error:
        # Words of SQL that stand for a function are read as columns where it was taken out.
        if (found := _NOT_THERE.search(error.message)) is not None and (name := found[1].lower()) in REJECTED:
            reason, rewrite = REJECTED[name]
            raise NotReproducibleError(name, reason, rewrite) from error
        raise


@contextmanager
def query_errors() -> Iterator[None]:
    """Say whose fault an error of DataFusion is.

    Raises:
        InvalidQueryError: The query's: it cannot be planned, or fails on a value.
        MemoryError: Memory did not suffice.
        EngineFailureError: A file's or the machine's.
    """
    try:
        yield
    except (EngineError, MemoryError):
        raise
    except BaseException as error:
        # A panic of the library is no ``Exception``; it comes back for the same query and rows.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise _explained(error) from error


def quoted(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def _explained(error: BaseException) -> EngineError | MemoryError:
    reported = str(error).removeprefix("DataFusion error: ")
    if _SHORTAGE in reported:
        return MemoryError(reported)
    if reported.startswith(_NOT_OF_THE_QUERY):
        return EngineFailureError(reported[:2000])
    return InvalidQueryError(reported[:2000])
