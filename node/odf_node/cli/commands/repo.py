"""``odf-node repo``: name places with many datasets, and say where datasets are pulled from and pushed to."""

import argparse
from typing import Any

from odf_node.cli.context import Context, parse_reference
from odf_node.cli.main import nested_options
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.naming import get_dataset, select_datasets
from odf_node.errors import UsageError
from odf_node.ports import RemoteDirection


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    add = _action(actions, "add", "give a repository a name")
    add.add_argument("name", metavar="NAME", help="what to call it; NAME/dataset means a dataset there")
    add.add_argument(
        "url", metavar="URL", help="http(s)://…, odf+http(s)://…, file:///…, s3://… (datasets are below it)"
    )
    delete = _action(actions, "delete", "forget repositories, and the aliases in them")
    delete.add_argument("names", nargs="*", metavar="NAME", help="as 'odf-node repo list' shows it")
    delete.add_argument("-a", "--all", action="store_true", help="all of them")
    add_output_format(_action(actions, "list", "list repositories"), "table", "json")
    line = "manage where datasets are pulled from and pushed to"
    alias = _action(actions, "alias", line)
    kinds = alias.add_subparsers(dest="alias_action", metavar="ACTION", required=True, title="actions")
    add_alias = _action(kinds, "add", "say where a dataset is pulled from or pushed to")
    _add_directions(add_alias)
    add_alias.add_argument("dataset", metavar="DATASET", help="name or identity")
    add_alias.add_argument("alias", metavar="ALIAS", help="repository/[account/]name, or a URL")
    delete_alias = _action(kinds, "delete", "forget aliases")
    _add_directions(delete_alias)
    delete_alias.add_argument("dataset", metavar="DATASET", help="name or identity")
    delete_alias.add_argument("alias", nargs="?", metavar="ALIAS", help="only this one")
    delete_alias.add_argument("-a", "--all", action="store_true", help="all aliases of the dataset")
    list_alias = _action(kinds, "list", "list aliases")
    list_alias.add_argument("datasets", nargs="*", metavar="DATASET", help="only of these (names or %% patterns)")
    add_output_format(list_alias, "table", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Do it."""
    if arguments.action == "alias":
        return _run_alias(context, arguments)
    node, console = context.node, context.console
    match arguments.action:
        case "add":
            added = node.remotes.add(arguments.name, parse_reference(arguments.url))
            node.record("repo add", added.name, added.url)
            console.text(f"added: {added.name} is {added.url}")
        case "delete":
            if arguments.all == bool(arguments.names):
                raise UsageError("name the repositories to delete, or say --all")
            for name in arguments.names or [item.name for item in node.store.list_repositories()]:
                node.remotes.delete(name)
                node.record("repo delete", name)
                console.text(f"deleted: {name}")
        case _:
            rows: list[dict[str, Any]] = [
                {"name": item.name, "url": item.url} for item in node.store.list_repositories()
            ]
            if arguments.output_format == "json":
                console.json(rows)
                return 0
            empty = "there are no repositories; 'odf-node repo add NAME URL' makes one known"
            console.table(rows, {"name": "NAME", "url": "URL"}, empty=empty)
    return 0


def _run_alias(context: Context, arguments: argparse.Namespace) -> int:
    node, console = context.node, context.console
    if arguments.alias_action == "list":
        records = (
            select_datasets(node.chains, arguments.datasets) if arguments.datasets else node.chains.list_datasets()
        )
        rows: list[dict[str, Any]] = [
            {"dataset": record.name, "kind": direction.value, "alias": remote.url}
            for record in records
            for direction in RemoteDirection
            for remote in node.store.list_remotes(record.id, direction)
        ]
        if arguments.output_format == "json":
            console.json(rows)
            return 0
        console.table(rows, {"dataset": "DATASET", "kind": "KIND", "alias": "ALIAS"}, empty="there are no aliases")
        return 0
    record = get_dataset(node.chains, arguments.dataset)
    named = [direction for direction in RemoteDirection if getattr(arguments, direction.value)]
    if arguments.alias_action == "add":
        if not named:
            raise UsageError("say what the alias is for: --pull, --push or both")
        for direction in named:
            node.remotes.add_alias(record, direction, parse_reference(arguments.alias))
            console.text(f"{record.name}: {direction.value} alias {arguments.alias}")
        return 0
    if arguments.all == (arguments.alias is not None):
        raise UsageError("name the alias to delete, or say --all")
    for remote in node.remotes.delete_aliases(record, named or list(RemoteDirection), arguments.alias):
        console.text(f"{record.name}: deleted {remote.direction.value} alias {remote.url}")
    return 0


def _action(actions: Any, name: str, line: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=line, description=f"{line[0].upper()}{line[1:]}.", parents=[nested_options()]
    )
    return parser


def _add_directions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pull", action="store_true", help="where 'odf-node pull DATASET' gets it from")
    parser.add_argument("--push", action="store_true", help="where 'odf-node push DATASET' offers it")
