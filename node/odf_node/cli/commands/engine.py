"""``odf-node engine``: which engines there are, what they consist of, how to start them faster."""

import argparse

from odf_engines.registry import get_engine, installed_engines
from odf_node.cli.context import Context
from odf_node.cli.main import nested_options
from odf_node.cli.parsing import add_output_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    for name, line in (
        ("list", "list installed engines, each with the digest over all its files"),
        ("inspect", "show an engine's version and the digest over all its files"),
        ("prepare", "compile and archive what the engine loads, once per machine, so that it starts faster"),
    ):
        action = actions.add_parser(
            name, help=line, description=line[0].upper() + line[1:] + ".", parents=[nested_options()]
        )
        if name != "list":
            action.add_argument(
                "engine", nargs="?", metavar="ENGINE", help="which (default: engines.ingest of the settings)"
            )
        if name != "prepare":
            add_output_format(action, "text", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Do it."""
    console = context.console
    if arguments.action == "list":
        engines = [get_engine(name) for name in installed_engines()]
        rows = [
            {
                "name": each.name,
                "version": each.version,
                "offers": ", ".join(sorted(each.offers)),
                "digest": str(each.digest()),
            }
            for each in engines
        ]
        if arguments.output_format == "json":
            console.json(rows)
        else:
            headings = {"name": "ENGINE", "version": "VERSION", "offers": "OFFERS", "digest": "DIGEST"}
            console.table(rows, headings, empty="no engine is installed")
        return 0
    engine = get_engine(arguments.engine or context.node.engine_roles.ingest)
    if arguments.action == "inspect":
        digest = str(engine.digest())
        if arguments.output_format == "json":
            console.json({"name": engine.name, "version": engine.version, "digest": digest})
        else:
            console.text(f"{engine.name} {engine.version}\n  digest {digest}")
        return 0
    with console.progress(f"preparing {engine.name}"):
        engine.prepare()
    console.note(f"{engine.name} starts from what was compiled and archived now")
    return 0
