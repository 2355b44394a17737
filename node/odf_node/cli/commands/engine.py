"""``odf-node engine``: which engines there are, what they consist of; adding those of others, a faster start."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.configuration.declaration import INGEST_ENGINE, SLOW_ENGINE
from odf_node.derive.engine_usage import EngineUsage
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.adding import AddedEngines
from odf_node.engines.finding import is_installed
from odf_node.errors import UsageError
from odf_node.ports.engines import WantedStart
from odf_node.wording import count_of

if TYPE_CHECKING:
    from odf_engines.engine import Engine

TOPIC: Final = "care for this node"
HELP: Final = "list engines, inspect them, prepare a faster start"
EXAMPLES: Final = """\
engine list
engine inspect spark
engine add flink flink.tar
engine remove flink
engine export spark spark.tar
engine prepare
"""

_ACTIONS = {
    "list": "list engines, each with the digest over all its files, and the datasets that wait for one",
    "inspect": "show an engine's version and the digest over all its files",
    "add": "add an engine of another ODF implementation: a program, a root folder as a tar, or a saved image",
    "remove": "forget an added engine; datasets that need it wait until it is added again",
    "export": "write the file that an engine was added from, for another node",
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
        elif name == "add":
            action.add_argument("engine", metavar="NAME", help="what the 'engine:' of a transform will say")
            action.add_argument("file", metavar="FILE", help="the program or archive; a copy is kept")
            action.add_argument(
                "--command", dest="start", metavar="WORDS",
                help="program and arguments, as the archive's root folder has them (default: those that it states, "
                "else /engine)",
            )  # fmt: skip
            action.add_argument("--port", type=int, help="where it answers (default: 2884)")
        elif name in {"remove", "export"}:
            action.add_argument("engine", metavar="NAME", help="which; of several of one name NAME@DIGEST")
            if name == "export":
                action.add_argument("file", metavar="FILE", help="does not exist yet")
        if name != "prepare":
            add_output_format(action, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    act = {"list": _list, "inspect": _inspect, "add": _add, "remove": _remove, "export": _export, "prepare": _prepare}
    return act[arguments.action](context, arguments)


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


def _add(context: CommandContext, arguments: argparse.Namespace) -> int:
    node = context.node
    try:
        words = None if arguments.start is None else tuple(shlex.split(arguments.start))
    except ValueError as error:
        raise UsageError(f"--command {arguments.start!r}: {error}") from error
    wanted = WantedStart(command=words, port=arguments.port)
    with context.console.progress(f"adding {arguments.engine}"):
        added = _added_engines(context).add(arguments.engine, Path(arguments.file).expanduser(), wanted, now=node.now())
    engine = added.engine
    node.record("engine add", engine.name, str(engine.digest()))
    for note in added.notes:
        context.console.note(f"{engine.name}: {note}")
    if arguments.output_format == "json":
        context.console.json({"name": engine.name, "version": engine.version, "digest": str(engine.digest())})
    else:
        context.console.text(f"{engine.name} {engine.version} starts and answers\n  digest {engine.digest()}")
    return 0


def _remove(context: CommandContext, arguments: argparse.Namespace) -> int:
    node = context.node
    usage = _usage(context)
    forgotten = _added_engines(context).remove(arguments.engine)
    others = [row for row in usage.list_engines() if row.name.lower() == forgotten.name]
    needed_by = [] if others else usage.list_datasets_of(forgotten.name)
    node.record("engine remove", forgotten.name, forgotten.digest)
    if arguments.output_format == "json":
        context.console.json({"name": forgotten.name, "digest": forgotten.digest, "waiting": needed_by})
        return 0
    waits = f"; {count_of(len(needed_by), 'dataset')} wait for it: {', '.join(needed_by)}" if needed_by else ""
    context.console.text(f"{forgotten.name} is forgotten{waits}")
    return 0


def _export(context: CommandContext, arguments: argparse.Namespace) -> int:
    target = Path(arguments.file).expanduser()
    found = _added_engines(context).export(arguments.engine, target)
    if arguments.output_format == "json":
        context.console.json(
            {"name": found.engine.name, "file": str(target), "bytes": found.file_bytes,
             "digest": str(found.engine.digest())}
        )  # fmt: skip
    else:
        context.console.text(f"{target}: {found.file_bytes:,} bytes\n  digest {found.engine.digest()}")
    return 0


def _usage(context: CommandContext) -> EngineUsage:
    return EngineUsage(context.node.store, context.node.engine_files)


def _added_engines(context: CommandContext) -> "AddedEngines":
    return AddedEngines(context.node.engine_files, EngineWorkspace(context.node.home.folder.engines))


def _prepare(context: CommandContext, arguments: argparse.Namespace) -> int:
    engine = _named_or_usual(context, arguments.engine)
    with context.console.progress(f"preparing {engine.name}"):
        engine.prepare()
    context.console.note(f"{engine.name} starts from what was compiled and archived now")
    return 0
