"""What a snapshot may say beyond its format, and the one form it is brought to before blocks are made of it.

* SNAP-1: A root dataset has sources and no transform; a derivative has a transform and no source. Neither states data
  or its own Seed: those events belong to the node.
* SNAP-2: ``query`` becomes a list of one query. The last query of a list has no alias, every other has one.
* SNAP-3: A transform has inputs, none twice; an input without alias is called what it is referred to by.
* SNAP-4: A source reads by ``schema`` or ``ddlSchema``, not by both; DDL must be DDL that can be read.
* SNAP-5: A dataset has one polling source, or push sources with different names.
* SNAP-6: Keys of a merge strategy name columns, each once.
* SNAP-7: Templates in fetch steps are well-formed; they stay as written, see ``templates``.
* SNAP-8: The data schema is stated in ODF's types.
* SNAP-9: The name is a dataset's name.

The chain checks several of these again when blocks are appended; here they point at a line of the author's file.

Source: ODF "DatasetSnapshot"; clauses SNAP-1 to SNAP-9 of ``spec/manifests.md``.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from odf_protocol.errors import OdfError
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    Event,
    ExecuteTransform,
    FetchStep,
    FetchStepEthereumLogs,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStep,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    Transform,
    TransformInput,
)
from odf_protocol.manifest.documents import DatasetSnapshot
from odf_protocol.manifest.errors import At
from odf_protocol.manifest.templates import find_variables, rewrite_fetch
from odf_protocol.names import DatasetName, parse_dataset_ref
from odf_protocol.schema_ddl import parse_ddl

_OF_THE_NODE: Final = (Seed, AddData, ExecuteTransform, DisablePushSource, DisablePollingSource)


def normalize_snapshot(snapshot: DatasetSnapshot) -> DatasetSnapshot:
    """Check the rules and return the snapshot with every event in the form that blocks hold.

    Raises:
        SnapshotError: The first rule broken, in the order of events.
    """
    at = At()
    # SNAP-9
    (at / "name").check("a dataset's name", DatasetName.parse, snapshot.name)
    events: list[Event] = []
    sources = _Sources()
    for index, event in enumerate(snapshot.metadata):
        here = at / "metadata" / index
        _check_allowed(event, snapshot.kind, here / "kind")
        sources.add(event, here)
        events.append(_normalize(event, here))
    return replace(snapshot, metadata=tuple(events))


def normalize_added_event(event: Event, dataset_kind: DatasetKind) -> Event:
    """Check and normalize one event that a user adds to an existing dataset.

    How it goes together with earlier sources is for the chain to judge.

    Raises:
        SnapshotError: A rule is broken; its path starts at the event.
    """
    at = At()
    _check_allowed(event, dataset_kind, at / "kind")
    return _normalize(event, at)


def _check_allowed(event: Event, kind: DatasetKind, at: At) -> None:
    """SNAP-1."""
    name = type(event).__name__
    if isinstance(event, _OF_THE_NODE):
        at.reject("an event that defines a dataset", f"{name}, which a node writes by itself")
    if kind is DatasetKind.ROOT and isinstance(event, SetTransform):
        at.reject("no transform in a Root dataset", name)
    if kind is DatasetKind.DERIVATIVE and isinstance(event, SetPollingSource | AddPushSource):
        at.reject("no source in a Derivative dataset", name)


class _Sources:
    """SNAP-5: the sources met so far."""

    def __init__(self) -> None:
        self._has_polling = False
        self._push_names: set[str] = set()

    def add(self, event: Event, at: At) -> None:
        """Remember a source, if the event is one."""
        match event:
            case SetPollingSource():
                if self._has_polling or self._push_names:
                    at.reject("a single source where there is a polling one", "SetPollingSource after another source")
                self._has_polling = True
            case AddPushSource(source_name=name):
                if self._has_polling:
                    at.reject("a single source where there is a polling one", "AddPushSource after SetPollingSource")
                if name in self._push_names:
                    (at / "sourceName").reject("push sources with different names", f"{name!r} again")
                self._push_names.add(name)


def _normalize(event: Event, at: At) -> Event:
    match event:
        case SetTransform():
            inputs = tuple(_normalize_inputs(event.inputs, at / "inputs"))
            return replace(event, inputs=inputs, transform=_normalize_transform(event.transform, at / "transform"))
        case SetPollingSource():
            check_fetch(event.fetch, at / "fetch")
            check_read(event.read, at / "read")
            check_merge(event.merge, at / "merge")
            return replace(event, preprocess=_normalize_preprocess(event.preprocess, at))
        case AddPushSource():
            check_read(event.read, at / "read")
            check_merge(event.merge, at / "merge")
            return replace(event, preprocess=_normalize_preprocess(event.preprocess, at))
        # SNAP-8
        case SetDataSchema(schema=None):
            at.reject("the field 'schema'", "only an Arrow schema" if event.raw_arrow_schema is not None else "none")
        case SetDataSchema(raw_arrow_schema=bytes()):
            (at / "rawArrowSchema").reject("a schema in ODF types only", "an Arrow schema beside it")
    return event


def _normalize_preprocess(transform: Transform | None, at: At) -> Transform | None:
    return None if transform is None else _normalize_transform(transform, at / "preprocess")


def _normalize_transform(transform: Transform, at: At) -> Transform:
    """SNAP-2."""
    if transform.query is not None and transform.queries is not None:
        (at / "queries").reject("either 'query' or 'queries'", "both")
    queries = (SqlQueryStep(query=transform.query),) if transform.query is not None else transform.queries
    if not queries:
        at.reject("a query", "none")
    unnamed = [index for index, step in enumerate(queries) if step.alias is None]
    if len(unnamed) > 1:
        (at / "queries" / unnamed[0]).reject("an alias for every query but the last", "none")
    if not unnamed:
        (at / "queries" / (len(queries) - 1)).reject("no alias for the last query, which is the result", "one")
    if unnamed[0] != len(queries) - 1:
        (at / "queries" / unnamed[0]).reject("the query without alias, which is the result, as the last", "it earlier")
    return replace(transform, query=None, queries=queries)


def _normalize_inputs(inputs: tuple[TransformInput, ...], at: At) -> Iterable[TransformInput]:
    """SNAP-3."""
    if not inputs:
        at.reject("at least one input", "none")
    refs: set[str] = set()
    aliases: set[str] = set()
    for index, given in enumerate(inputs):
        here = at / index
        (here / "datasetRef").check("a dataset's id or name", parse_dataset_ref, given.dataset_ref)
        if given.dataset_ref.lower() in refs:
            (here / "datasetRef").reject("each input once", f"{given.dataset_ref!r} again")
        alias = given.dataset_ref if given.alias is None else given.alias
        if alias in aliases:
            here.reject("inputs with different aliases", f"{alias!r} again")
        refs.add(given.dataset_ref.lower())
        aliases.add(alias)
        yield replace(given, alias=alias)


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
