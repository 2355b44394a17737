"""``odf-node engine add``, ``remove`` and ``export``: engines of other ODF implementations, from files.

``ACTIONS`` is found by its entry point in the group ``odf_node.actions``.

Source: clauses ADDED-1 to ADDED-4 in ``spec/plug-ins/foreign.md``.
"""

import argparse
import shlex
from pathlib import Path
from typing import Final

from odf_foreign.adding import AddedEngines
from odf_foreign.engine_folder import EngineFolder, WantedStart
from odf_node.cli.actions import CommandActions
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.derive.engine_usage import EngineUsage
from odf_node.engine_workspace import EngineWorkspace
from odf_node.errors import UsageError
from odf_node.wording import count_of

_EXAMPLES: Final = """\
engine add flink flink.tar
engine remove flink
engine export spark spark.tar
"""
_LINES: Final = {
    "add": "add an engine of another ODF implementation: a program, a root folder as a tar, or a saved image",
    "remove": "forget an added engine; datasets that need it wait until it is added again",
    "export": "write the file that an engine was added from, for another node",
}


def configure(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare what an action takes."""
    if name == "add":
        parser.add_argument("engine", metavar="NAME", help="what the 'engine:' of a transform will say")
        parser.add_argument("file", metavar="FILE", help="the program or archive; a copy is kept")
        parser.add_argument(
            "--command", dest="start", metavar="WORDS",
            help="program and arguments, as the archive's root folder has them (default: those that it states, "
            "else /engine)",
        )  # fmt: skip
        parser.add_argument("--port", type=int, help="where it answers (default: 2884)")
    else:
        parser.add_argument("engine", metavar="NAME", help="which; of several of one name NAME@DIGEST")
        if name == "export":
            parser.add_argument("file", metavar="FILE", help="does not exist yet")
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    return {"add": _add, "remove": _remove, "export": _export}[arguments.action](context, arguments)


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
    usage = EngineUsage(context.node.store, context.node.engine_files)
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


def _added_engines(context: CommandContext) -> AddedEngines:
    folder = context.node.home.folder
    return AddedEngines(EngineFolder(folder), EngineWorkspace(folder.engines))


ACTIONS: Final = CommandActions(_LINES, tuple(_EXAMPLES.splitlines()), configure, run)
