"""Commands by name: each is one module, which holds everything about it.

The core's commands are the modules of the folder ``commands``, found by walking it: a name that stands in a file name
needs no second place. Those of plug-ins and of other packages are declared by entry points of the group
``odf_node.commands``, which name a module. A command of the folder keeps its name whatever a package declares.

A module of a command has ``TOPIC``, ``HELP`` (one line), ``EXAMPLES`` (a line each, without the program's name; words
stand for what the caller has: ``sales`` and ``totals`` are datasets, ``peer.example`` another node),
``configure(parser)`` and ``run(context, arguments)``, which returns an exit code or a coroutine of one; ``ALIASES``
where shells have made other names usual.

Source: clause CMD-1 in ``spec/commands.md``.
"""

import argparse
import importlib
import pkgutil
import shlex
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Final

from odf_engines.plug_in_names import PlugInNames
from odf_node.cli.actions import add_to, choose_run, find_actions

GROUP: Final = "odf_node.commands"
"""Entry points of commands: name and module."""

TOPICS: Final = ("make and read datasets", "exchange with others", "check and trust", "care for this node")
"""Topics in the order of the help; topics that only packages have follow in the order of the alphabet."""

_OWN_PACKAGE: Final = "odf_node.cli.commands"


class UnusableCommandError(Exception):
    """A package declares a command that cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command, as its module declares it.

    Attributes:
        name: The word that stands for it.
        topic: What it is for; the help has a part for each topic.
        line: What it does, in the help.
        examples: Lines as one types them, without the program's name.
        aliases: Other words for it.
        configure: Declares its arguments.
        run: Runs it with a ``Context`` and the arguments.
    """

    name: str
    topic: str
    line: str
    examples: tuple[str, ...]
    aliases: tuple[str, ...]
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Any, argparse.Namespace], int | Coroutine[Any, Any, int]]


def list_names() -> tuple[str, ...]:
    """List the names of all commands, sorted; loads none of them."""
    return tuple(sorted({*_list_own(), *_find_points()}))


@cache
def find_command(name: str) -> Command | None:
    """Load a command by its name.

    Raises:
        UnusableCommandError: It is of another package and cannot be loaded.
    """
    if name in _list_own():
        return _with_actions(_read_module(name, importlib.import_module(f"{_OWN_PACKAGE}.{name}")))
    point = _find_points().get(name)
    return None if point is None else _load_point(point)


def find_alias(word: str) -> str | None:
    """Find the command that a word is another name of; reads the program's own commands."""
    return next((name for name in _list_own() if word in _get_own(name).aliases), None)


def list_commands() -> dict[str, list[Command]]:
    """Load all commands, by topic; those that cannot be loaded are left out.

    They are named where they are run: the help of all others must not need them.
    """
    found: dict[str, list[Command]] = {topic: [] for topic in TOPICS}
    for command in sorted(_iter_usable(), key=lambda each: (each.topic, each.name)):
        found.setdefault(command.topic, []).append(command)
    return found


def select_examples(examples: Iterable[str], words: str) -> list[str]:
    """Select the examples of a command, or of an action (``quarantine show``)."""
    begin = words.split()
    return [line for line in examples if shlex.split(line)[: len(begin)] == begin]


def _iter_usable() -> Iterator[Command]:
    for name in list_names():
        try:
            command = find_command(name)
        except UnusableCommandError:
            continue
        if command is not None:
            yield command


def _with_actions(command: Command) -> Command:
    """Give a command with the actions that plug-ins add to it."""
    added = find_actions(command.name)
    if not added:
        return command

    def configure(parser: argparse.ArgumentParser) -> None:
        command.configure(parser)
        for each in added:
            add_to(parser, each)

    examples = (*command.examples, *(line for each in added for line in each.examples))
    return replace(command, examples=examples, configure=configure, run=partial(choose_run, command.run))


def _get_own(name: str) -> Command:
    command = find_command(name)
    assert command is not None
    return command


@cache
def _list_own() -> tuple[str, ...]:
    package = importlib.import_module(_OWN_PACKAGE)
    return tuple(sorted(each.name for each in pkgutil.iter_modules(package.__path__)))


@cache
def _find_points() -> Mapping[str, EntryPoint]:
    names = PlugInNames(GROUP, {})  # of two packages with one name, that of this wheel counts (PLUG-1)
    return {name: names.get_point(name) for name in names.installed() if name not in _list_own()}


def _load_point(point: EntryPoint) -> Command:
    origin = f"package '{point.dist.name}'" if point.dist is not None else f"module '{point.value}'"
    try:
        return _read_module(point.name, point.load())
    except (Exception, SystemExit) as error:  # code of others: whatever it raises, the caller learns whose it is
        text = f"command '{point.name}' of {origin} cannot be loaded: {type(error).__name__}: {error}"
        raise UnusableCommandError(text) from error


def _read_module(name: str, module: ModuleType) -> Command:
    """Read what a module declares.

    Raises:
        AttributeError: Something is missing.
    """
    return Command(
        name=name,
        topic=module.TOPIC,
        line=module.HELP,
        examples=tuple(module.EXAMPLES.splitlines()),
        aliases=tuple(getattr(module, "ALIASES", ())),
        configure=module.configure,
        run=module.run,
    )
