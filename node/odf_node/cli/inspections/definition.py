"""What a dataset declares: its columns, its query, what it is derived from."""

from typing import TYPE_CHECKING, Any

from odf_node.cli.context import Context
from odf_node.errors import UsageError
from odf_node.ports import DatasetRecord

if TYPE_CHECKING:
    from odf_protocol.events import SetTransform


def show_schema(context: Context, record: DatasetRecord, *, as_json: bool) -> None:
    """Show the columns.

    Raises:
        UsageError: The dataset never had data.
    """
    from odf_node.datasets.chains import load_view
    from odf_protocol.schema_compat import describe_type

    schema = load_view(context.node.store, record.id).schema
    if schema is None:
        raise UsageError(f"'{record.name}' has no schema yet: it has never had data")
    fields = [{"name": field.name, "type": describe_type(field.type)} for field in schema.fields]
    if as_json:
        context.console.json(fields)
    else:
        context.console.table(fields, {"name": "COLUMN", "type": "TYPE"})


def show_lineage(context: Context, record: DatasetRecord, *, as_json: bool) -> None:
    """Show the inputs of a derivative; a root has none."""
    transform = _find_transform(context, record)
    if transform is not None:
        _show_derivative(context, record, transform, as_json=as_json, with_query=False)
    elif as_json:
        context.console.json({"dataset": record.name, "inputs": []})
    else:
        context.console.text(f"{record.name} ({record.id})\n  is a root: it is derived from no other dataset")


def show_query(context: Context, record: DatasetRecord, *, as_json: bool) -> None:
    """Show the inputs and the query of a derivative.

    Raises:
        UsageError: The dataset is a root.
    """
    transform = _find_transform(context, record)
    if transform is None:
        raise UsageError(f"'{record.name}' is no derivative: it declares no query")
    _show_derivative(context, record, transform, as_json=as_json, with_query=True)


def _find_transform(context: Context, record: DatasetRecord) -> "SetTransform | None":
    from odf_node.datasets.chains import load_view

    return load_view(context.node.store, record.id).transform


def _show_derivative(
    context: Context, record: DatasetRecord, declared: "SetTransform", *, as_json: bool, with_query: bool
) -> None:
    console, engine = context.console, declared.transform.engine
    inputs = _describe_inputs(context, declared)
    steps = [{"alias": step.alias or "", "query": step.query} for step in declared.transform.queries or ()]
    if as_json:
        console.json({"dataset": record.name, "engine": engine, "inputs": inputs, "queries": steps})
        return
    console.text(f"{record.name} ({record.id})")
    for item in inputs:
        name = item["name"] or "a dataset that is not in this node"
        console.text(f"  reads {name} as {item['alias']} ({item['id']})")
    for step in steps if with_query else ():
        alias = f", {step['alias']}" if step["alias"] else ""
        console.text(f"\n-- {engine}{alias}\n{step['query'].strip()}")


def _describe_inputs(context: Context, declared: "SetTransform") -> list[dict[str, Any]]:
    from odf_protocol.did import DatasetId

    inputs = []
    for item in declared.inputs:
        source = context.node.store.find_dataset(DatasetId.parse(item.dataset_ref))
        inputs.append({"alias": item.alias, "id": item.dataset_ref, "name": source.name if source else None})
    return inputs
