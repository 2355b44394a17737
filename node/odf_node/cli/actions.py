"""Actions that plug-ins add to commands of the core, such as ``engine add``.

They are entry points of the group ``odf_node.actions``, named ``COMMAND.NAME``: of those only the ones of the command
that was typed are loaded. An action of the command itself keeps its name.

Source: clause CMD-3 in ``spec/commands.md``.
"""

import argparse
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from odf_node.cli.parsing import CommandParser, as_sentence
from odf_node.plug_ins import load_plug_ins

GROUP: Final = "odf_node.actions"
_RUN: Final = "run_added_action"
"""Of the arguments, where the action is of a plug-in."""

Run = Callable[[Any, argparse.Namespace], int | Coroutine[Any, Any, int]]


@dataclass(frozen=True, slots=True)
class CommandActions:
    """What an entry point of the group leads to.

    Attributes:
        lines: What each action does, in the help, by its name.
        examples: Lines as one types them, without the program's name.
        configure: Declares what an action of a name takes.
        run: Runs the one that ``action`` of the arguments names, with a context.
    """

    lines: Mapping[str, str]
    examples: tuple[str, ...]
    configure: Callable[[str, argparse.ArgumentParser], None]
    run: Run


def find_actions(command: str) -> tuple[CommandActions, ...]:
    """Load what plug-ins add to a command, in the order of the names of their entry points."""
    return tuple(load_plug_ins(GROUP, CommandActions, f"{command}.").values())


def has_action(command: str, action: str) -> bool:
    """Say whether a plug-in adds an action to a command."""
    return any(action in each.lines for each in find_actions(command))


def add_to(parser: argparse.ArgumentParser, added: CommandActions) -> None:
    """Declare actions behind those that a command has."""
    assert isinstance(parser, CommandParser)
    for name, line in added.lines.items():
        if (child := parser.add_action(name, help=line, description=as_sentence(line))) is not None:
            child.set_defaults(**{_RUN: added.run})
            added.configure(name, child)


def choose_run(own: Run, context: Any, arguments: argparse.Namespace) -> int | Coroutine[Any, Any, int]:
    """Run the action that was typed: of a plug-in, or the command's own."""
    run: Run = getattr(arguments, _RUN, own)
    return run(context, arguments)
