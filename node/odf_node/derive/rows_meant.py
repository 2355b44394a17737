"""Whether a query over the new rows of each step alone is meant to see corrections and retractions as rows.

An engine that is told of no earlier rows sees a correction as two rows more, so a sum counts what it corrects twice.
That is what existing nodes compute, and what the manifest of such a derivative has to say it means.

Source: clause FUSION-13 in ``spec/extensions/engine-contract.md``.
"""

import re
from typing import Final

from odf_engines.contract import Grade
from odf_engines.engine import Capability
from odf_engines.errors import EngineMissingError
from odf_engines.registry import engines_offering, get_engine
from odf_node.datasets.chains import load_view
from odf_node.derive.waiting import gives_by_watermarks
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.events import (
    MergeStrategyAppend,
    MergeStrategyLedger,
    SetAttachments,
    SetTransform,
)
from odf_protocol.manifest.nodes import MapNode, ScalarNode
from odf_protocol.manifest.yaml_text import parse_yaml

TRANSFORM_PATH: Final = "odf-node/transform.yaml"
"""The attachment in which a manifest says it."""
_KEY, _MEANT = "changelog", "as-rows"
_ACROSS_ROWS: Final = {
    "Aggregate": "groups and aggregates", "Distinct": "tells repeated rows", "WindowAggr": "looks at neighbours of",
    "Join": "pairs", "Limit": "cuts off",
}  # fmt: skip
"""What makes of several rows one, by the words of the engine's findings (FUSION-5)."""
# Over rows that are appended alone, a query without any of these gives rows that are.
_CORRECTING: Final = re.compile(
    r"\b(?:group\s+by|join|union|intersect|except|distinct|over\s*\(|limit|having|max|min|sum|avg|count)\b",
    re.IGNORECASE,
)
_MAX_DEPTH: Final = 100  # guess: derivatives of derivatives


def check_meant(
    store: MetadataStore, dataset: str, declared: SetTransform, attachments: SetAttachments | None, grade: Grade
) -> None:
    """Reject a query that would count corrections as rows, unless its manifest says that this is meant.

    Args:
        store: What the home keeps.
        dataset: What the query makes, for people.
        declared: Its inputs are known here.
        attachments: Of the dataset.
        grade: Of an engine that is stepwise.

    Raises:
        UsageError: It would; it names the ways out.
        MalformedError: The attachment is none of ours.
    """
    found = next((each.expression for each in grade.findings if each.expression in _ACROSS_ROWS), None)
    if found is None or is_meant(attachments):
        return
    for item in declared.inputs:
        record = find_record(store, item.dataset_ref)
        if record is not None and may_correct(store, record):
            raise UsageError(
                f"the query of '{dataset}' {_ACROSS_ROWS[found]} the new rows of each step, and '{record.name}' "
                f"corrects and retracts rows, which {declared.transform.engine} would count as further rows; instead: "
                f"{_other_engine()}, which computes it over the current rows and corrects what it gave; or, "
                "where changes are meant to count as rows, as other nodes count them, the attachment "
                f"'{TRANSFORM_PATH}' (SetAttachments) with '{_KEY}: {_MEANT}'"
            )


def is_meant(attachments: SetAttachments | None) -> bool:
    """Say whether a manifest declares it.

    Raises:
        MalformedError: The attachment says something else.
    """
    for item in attachments.attachments.items if attachments else ():
        if item.path == TRANSFORM_PATH:
            documents = parse_yaml(item.content, source_name=TRANSFORM_PATH)
            entries = documents[0].entries if len(documents) == 1 and isinstance(documents[0], MapNode) else ()
            stated = [(key.text, node.text if isinstance(node, ScalarNode) else None) for key, node in entries]
            if stated != [(_KEY, _MEANT)]:
                raise MalformedError(TRANSFORM_PATH, expected=f"'{_KEY}: {_MEANT}'", found=repr(item.content[:60]))
            return True
    return False


def find_record(store: MetadataStore, reference: str) -> DatasetRecord | None:
    """Find the dataset that an input names, by identity or by name."""
    try:
        return store.find_dataset(DatasetId.parse(reference))
    except MalformedError:
        wanted = reference.lower()
        return next((each for each in store.list_datasets() if each.name.lower() == wanted), None)


def may_correct(store: MetadataStore, record: DatasetRecord, depth: int = 0) -> bool:
    """Say whether a dataset, by what it declares, corrects or retracts rows in the ordinary course."""
    view = load_view(store, record.id)
    if view.transform is None:
        return _root_may_correct(view)
    transform, names = view.transform.transform, [each.dataset_ref for each in view.transform.inputs]
    if gives_by_watermarks(transform) and not transform.temporal_tables:
        return False  # each window once
    texts = [each.query for each in transform.queries or ()] + ([transform.query] if transform.query else [])
    is_stepwise = _is_stepwise(transform.engine)
    if (
        not is_stepwise
        and not transform.temporal_tables
        and (len(names) > 1 or any(_CORRECTING.search(each) for each in texts))
    ):
        return True
    if is_stepwise and not any(re.search(rf"\b{re.escape(view.vocabulary.op)}\b|\*", each) for each in texts):
        return False  # operations that are not passed on become appends
    inputs = [find_record(store, each) for each in names]
    return depth >= _MAX_DEPTH or any(each is None or may_correct(store, each, depth + 1) for each in inputs)


def _other_engine() -> str:
    whole = [name for name in engines_offering(Capability.TRANSFORM) if not get_engine(name).is_stepwise]
    return f"'engine: {whole[0]}'" if whole else "an engine over all rows (pip install 'odf-node[spark]')"


def _is_stepwise(name: str) -> bool:
    try:
        return get_engine(name).is_stepwise
    except EngineMissingError:
        return False  # one that is not here may correct what it gave


def _root_may_correct(view: DatasetView) -> bool:
    merges = [each.merge for each in view.push_sources.values()]
    if view.polling_source is not None:
        merges.append(view.polling_source.merge)
    return any(not isinstance(each, MergeStrategyAppend | MergeStrategyLedger) for each in merges)
