"""``odf-node repo``: name places with many datasets, and say where datasets are pulled from and pushed to."""

import argparse
from typing import Any, Final

from odf_node.cli.context import CommandContext, parse_reference
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.datasets.naming import get_dataset, select_datasets
from odf_node.errors import UsageError
from odf_node.records.datasets import RemoteDirection

TOPIC: Final = "exchange with others"
HELP: Final = "name repositories; say where datasets are pulled from and pushed to"
EXAMPLES: Final = """\
repo add partner https://peer.example
repo list
repo delete partner
repo alias add --pull sales partner/sales
repo alias list
repo alias delete sales partner/sales
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = add_actions(
        parser,
        {
            "add": "give a repository a name",
            "delete": "forget repositories, and the aliases in them",
            "list": "list repositories",
            "alias": "manage where datasets are pulled from and pushed to",
        },
    )
    add, delete = actions["add"], actions["delete"]
    add.add_argument("name", metavar="NAME", help="what to call it; NAME/dataset means a dataset there")
    add.add_argument(
        "url", metavar="URL", help="http(s)://…, odf+http(s)://…, file:///…, s3://… (datasets are below it)"
    )
    delete.add_argument("names", nargs="*", metavar="NAME", help="as 'odf-node repo list' shows it")
    delete.add_argument("-a", "--all", action="store_true", help="all of them")
    add_output_format(actions["list"], "table", "json")
    of_aliases = {
        "add": "say where a dataset is pulled from or pushed to",
        "delete": "forget aliases",
        "list": "list aliases",
    }
    for name, action in add_actions(actions["alias"], of_aliases, dest="alias_action").items():
        if name == "list":
            action.add_argument("datasets", nargs="*", metavar="DATASET", help="only of these (names or %% patterns)")
            add_output_format(action, "table", "json")
            continue
        action.add_argument("--pull", action="store_true", help="where 'odf-node pull DATASET' gets it from")
        action.add_argument("--push", action="store_true", help="where 'odf-node push DATASET' offers it")
        action.add_argument("dataset", metavar="DATASET", help="name or identity")
        if name == "add":
            action.add_argument("alias", metavar="ALIAS", help="repository/[account/]name, or a URL")
        else:
            action.add_argument("alias", nargs="?", metavar="ALIAS", help="only this one")
            action.add_argument("-a", "--all", action="store_true", help="all aliases of the dataset")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
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
            empty = "there are no repositories; 'odf-node repo add NAME URL' makes one known"
            console.result(rows, {"name": "NAME", "url": "URL"}, as_json=arguments.output_format == "json", empty=empty)
    return 0


def _run_alias(context: CommandContext, arguments: argparse.Namespace) -> int:
    node, console = context.node, context.console
    if arguments.alias_action == "list":
        records = select_datasets(node.store, arguments.datasets) if arguments.datasets else node.store.list_datasets()
        rows: list[dict[str, Any]] = [
            {"dataset": record.name, "kind": direction.value, "alias": remote.url}
            for record in records
            for direction in RemoteDirection
            for remote in node.store.list_remotes(record.id, direction)
        ]
        columns = {"dataset": "DATASET", "kind": "KIND", "alias": "ALIAS"}
        console.result(rows, columns, as_json=arguments.output_format == "json", empty="there are no aliases")
        return 0
    record = get_dataset(node.store, arguments.dataset)
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
