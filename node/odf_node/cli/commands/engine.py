"""``odf-node engine``: which engines there are, what they consist of, a faster start; plug-ins add further actions."""

import argparse
from typing import TYPE_CHECKING, Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.configuration.declaration import INGEST_ENGINE, SLOW_ENGINE
from odf_node.derive.engine_usage import EngineUsage
from odf_node.engines.finding import is_installed

if TYPE_CHECKING:
    from odf_engines.engine import Engine

TOPIC: Final = "care for this node"
HELP: Final = "list engines, inspect them, prepare a faster start"
EXAMPLES: Final = """\
engine list
engine inspect spark
engine prepare
"""

_ACTIONS = {
    "list": "list engines, each with the digest over all its files, and the datasets that wait for one",
    "inspect": "show an engine's version and the digest over all its files",
    "prepare": "compile and archive what the engine loads, once per machine, so that it starts faster",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    for name, action in add_actions(parser, _ACTIONS).items():
        if name in {"inspect", "prepare"}:
            action.add_argument(
                "engine",
                nargs="?",
                metavar="ENGINE",
                help="NAME or NAME@DIGEST (default: engines.ingest of the settings)",
            )
        if name != "prepare":
            add_output_format(action, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    return {"list": _list, "inspect": _inspect, "prepare": _prepare}[arguments.action](context, arguments)


def _list(context: CommandContext, arguments: argparse.Namespace) -> int:
    console = context.console
    usage = _usage(context)
    rows, waiting = usage.list_engines(), usage.list_waiting()
    if arguments.output_format == "json":
        console.json([row.to_json() for row in rows] + [each.to_json() for each in waiting])
        return 0
    headings = {"name": "ENGINE", "version": "VERSION", "capabilities": "OFFERS", "digest": "DIGEST"}
    headings |= {"origin": "FROM", "is_default": "NEW STEPS", "datasets": ">DATASETS", "steps": ">STEPS"}
    console.table([row.to_text() for row in rows], headings, empty="no engine is installed")
    for row in rows:
        if row.damage:
            console.line(f"damaged: {row.damage}")
    for each in waiting:
        console.line(each.describe())
    return 0


def _inspect(context: CommandContext, arguments: argparse.Namespace) -> int:
    engine = _named_or_usual(context, arguments.engine)
    digest = str(engine.digest())
    if arguments.output_format == "json":
        context.console.json({"name": engine.name, "version": engine.version, "digest": digest})
    else:
        context.console.text(f"{engine.name} {engine.version}\n  digest {digest}")
    return 0


def _named_or_usual(context: CommandContext, name: str | None) -> "Engine":
    engines = context.node.engines
    return engines.get_engine(name or (SLOW_ENGINE if is_installed(SLOW_ENGINE) else INGEST_ENGINE))


def _usage(context: CommandContext) -> EngineUsage:
    return EngineUsage(context.node.store, context.node.engine_files)


def _prepare(context: CommandContext, arguments: argparse.Namespace) -> int:
    engine = _named_or_usual(context, arguments.engine)
    with context.console.progress(f"preparing {engine.name}"):
        engine.prepare()
    context.console.note(f"{engine.name} starts from what was compiled and archived now")
    return 0
