"""``odf-node engine``: which engines there are, what they consist of, how to start them faster."""

import argparse

from odf_node.cli.context import Context
from odf_node.cli.main import nested_options


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    actions.add_parser("list", help="list installed engines", parents=[nested_options()])
    inspect = actions.add_parser(
        "inspect", help="show an engine's version and the digest over all its files", parents=[nested_options()]
    )
    inspect.add_argument("engine", nargs="?", default="spark")
    prepare = actions.add_parser(
        "prepare", help="make this machine's class-data archive, so that the engine starts faster"
    )
    prepare.add_argument("engine", nargs="?", default="spark")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Do it."""
    from odf_engines.registry import get_engine, installed_engines

    console = context.console
    if arguments.action == "list":
        rows = [{"name": name, "version": get_engine(name).version} for name in installed_engines()]
        console.table(rows, {"name": "ENGINE", "version": "VERSION"}, empty="no engine is installed")
        return 0
    engine = get_engine(arguments.engine)
    if arguments.action == "inspect":
        console.text(f"{engine.name} {engine.version}\n  digest {engine.digest()}")
        return 0
    with console.progress(f"preparing {engine.name}"):
        engine.prepare()
    console.note(f"{engine.name} starts from a class-data archive now")
    return 0
