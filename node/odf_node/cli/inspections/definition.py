"""What a dataset declares: its columns, its query, what it is derived from."""

from typing import TYPE_CHECKING, Any

from odf_node.cli.context import CommandContext
from odf_node.datasets.chains import load_view
from odf_node.derive.grading import describe_reach
from odf_node.derive.lineage import read_lineage, write_dot, write_mermaid
from odf_node.derive.query_history import HistoryRows, list_queries
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_protocol.coverage import decode_progress
from odf_protocol.schema_compat import describe_type

if TYPE_CHECKING:
    from odf_node.derive.query_history import QuerySpan
    from odf_protocol.did import DatasetId
    from odf_protocol.events import SetTransform


def show_schema(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> None:
    """Show the columns.

    Raises:
        UsageError: The dataset never had data.
    """
    schema = load_view(context.node.store, record.id).schema
    if schema is None:
        raise UsageError(f"'{record.name}' has no schema yet: it has never had data")
    fields = [{"name": field.name, "type": describe_type(field.type)} for field in schema.fields]
    context.console.result(fields, {"name": "COLUMN", "type": "TYPE"}, as_json=as_json)


def show_lineage(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> None:
    """Show the inputs of a derivative; a root has none."""
    transform = _find_transform(context, record)
    if transform is not None:
        _show_derivative(context, record, transform, as_json=as_json, with_query=False)
    elif as_json:
        context.console.json({"dataset": record.name, "inputs": []})
    else:
        context.console.text(f"{record.name} ({record.id})\n  is a root: it is derived from no other dataset")


def draw_lineage(context: CommandContext, record: DatasetRecord, language: str) -> None:
    """Write the lineage of a dataset, down to the roots, in the language of a program that draws: dot or mermaid."""
    write = write_dot if language == "dot" else write_mermaid
    for line in write(read_lineage(context.node.store, record)):
        context.console.text(line)


def show_query(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> None:
    """Show the inputs and the query of a derivative.

    Raises:
        UsageError: The dataset is a root.
    """
    transform = _find_transform(context, record)
    if transform is None:
        raise UsageError(f"'{record.name}' is no derivative: it declares no query")
    _show_derivative(context, record, transform, as_json=as_json, with_query=True)


def _find_transform(context: CommandContext, record: DatasetRecord) -> "SetTransform | None":
    return load_view(context.node.store, record.id).transform


def _show_derivative(
    context: CommandContext, record: DatasetRecord, declared: "SetTransform", *, as_json: bool, with_query: bool
) -> None:
    console, engine = context.console, declared.transform.engine
    queries = [_describe_query(context, span) for span in list_queries(context.node.store, record.id)]
    newest = queries[-1]
    reach = describe_reach(record, context.node.store, context.node.engine_files)
    if as_json:
        shown = {"dataset": record.name, "engine": engine, "inputs": newest["inputs"], "queries": newest["queries"]}
        console.json(shown | {"made": queries, "reach": reach})
        return
    console.text(f"{record.name} ({record.id})")
    for item in newest["inputs"]:
        name = item["name"] or "a dataset that is not in this node"
        of = "" if item["heldRows"] is None else f" of {item['heldRows']:,} here"
        console.line(f"  reads {name} as {item['alias']} ({item['id']}): {_words(item['read'])}{of}")
    if reach is not None:
        console.text(f"  {reach}")
    for query in queries if with_query else ():
        # One query over everything, as almost always, needs no heading.
        if len(queries) > 1:
            state = "in force" if query is newest else "earlier"
            read = ", ".join(f"{item['alias']} {_words(item['read'])}" for item in query["inputs"])
            console.text("")
            console.line(f"block {query['block']}, {state}: made {_words(query['rows'])} of {read}")
        for step in query["queries"]:
            alias = f", {step['alias']}" if step["alias"] else ""
            console.text("")
            console.line(f"-- {query['engine']}{alias}")
            console.text(step["query"].strip())


def _describe_query(context: CommandContext, span: "QuerySpan") -> dict[str, Any]:
    transform = span.declared.transform
    return {
        "block": span.sequence_number,
        "engine": transform.engine,
        "queries": [{"alias": step.alias or "", "query": step.query} for step in transform.queries or ()],
        "steps": span.steps,
        "rows": _plain(span.made),
        "inputs": [
            _describe_input(context, item.alias, dataset_id, rows)
            for item, (dataset_id, rows) in zip(span.declared.inputs, span.read, strict=True)
        ],
    }


def _describe_input(
    context: CommandContext, alias: str | None, dataset_id: "DatasetId", rows: HistoryRows | None
) -> dict[str, Any]:
    chains = context.node.store
    source = chains.find_dataset(dataset_id)
    held = None if source is None else decode_progress(chains.get_chain_state(dataset_id)[1]).row_count
    return {
        "alias": alias,
        "id": str(dataset_id),
        "name": source.name if source else None,
        "read": _plain(rows),
        "heldRows": held,
    }


def _plain(rows: HistoryRows | None) -> list[int] | None:
    return None if rows is None else [rows.first, rows.last]


def _words(rows: list[int] | None) -> str:
    return "no rows" if rows is None else str(HistoryRows(*rows))
