"""Rules of the parts of a source: fetch, read, merge. Clauses as in ``snapshot_rules``."""

from odf_protocol.errors import OdfError
from odf_protocol.events import (
    FetchStep,
    FetchStepEthereumLogs,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStep,
)
from odf_protocol.manifest.fetch_templates import rewrite_fetch
from odf_protocol.manifest.snapshot_error import At
from odf_protocol.manifest.templates import find_variables
from odf_protocol.schema_ddl import parse_ddl


def check_fetch(fetch: FetchStep, at: At) -> None:
    """SNAP-7, and that a chain to read logs from is named.

    Raises:
        SnapshotError: A template is malformed, or no Ethereum node is given.
    """
    if isinstance(fetch, FetchStepEthereumLogs) and fetch.chain_id is None and fetch.node_url is None:
        at.reject("'chainId' or 'nodeUrl'", "neither")
    rewrite_fetch(fetch, lambda path, text: _check_template(At((*at.path, *path)), text))


def _check_template(at: At, text: str) -> str:
    at.check("a template like ${{ env.NAME || 'default' }}", find_variables, text)
    return text


def check_read(read: ReadStep, at: At) -> None:
    """SNAP-4.

    Raises:
        SnapshotError: Two schemas, or one in DDL that cannot be read.
    """
    if read.ddl_schema is None:
        return
    if read.schema is not None:
        (at / "ddlSchema").reject("either 'schema' or 'ddlSchema'", "both")
    try:
        parse_ddl(read.ddl_schema)
    except OdfError as error:
        (at / "ddlSchema").reject("columns like 'name TYPE [NOT NULL]'", str(error))


def check_merge(merge: MergeStrategy, at: At) -> None:
    """SNAP-6.

    Raises:
        SnapshotError: A key is empty or names a column twice.
    """
    if isinstance(merge, MergeStrategyAppend):
        return
    _check_columns(merge.primary_key, at / "primaryKey")
    if isinstance(merge, MergeStrategySnapshot) and merge.compare_columns is not None:
        _check_columns(merge.compare_columns, at / "compareColumns")


def _check_columns(columns: tuple[str, ...], at: At) -> None:
    if not columns:
        at.reject("at least one column", "none")
    seen: set[str] = set()
    for index, column in enumerate(columns):
        if column in seen:
            (at / index).reject("each column once", f"{column!r} again")
        seen.add(column)
