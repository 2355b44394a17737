"""``odf-node completion``: a script with which a shell completes commands and options."""

import argparse
from typing import TYPE_CHECKING, Any, Final

import shtab

from odf_node.cli.context import CommandContext
from odf_node.cli.main import build_parser
from odf_node.cli.parsing import CommandParser

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC: Final = "care for this node"
HELP: Final = "write a script with which bash, zsh or fish completes commands and options"
EXAMPLES: Final = """\
completion bash > ~/.local/share/bash-completion/completions/odf-node
"""

_PLACES: Final = {
    "bash": "~/.local/share/bash-completion/completions/odf-node",
    "zsh": "~/.zfunc/_odf-node    # with 'fpath+=~/.zfunc' before 'compinit' in ~/.zshrc",
    "fish": "~/.config/fish/completions/odf-node.fish",
}
"""Where each shell looks for completions. Source: their manuals."""

_FILES: Final = ("FILE", "MANIFEST", "FOLDER", "PLACE")
"""Parts of the names of arguments that stand for paths."""

_DATASET: Final = "DATASET"
_NAMES: Final = "odf-node list -o names 2>/dev/null"
"""What a shell runs where a dataset is to be named; it loads little (``tests/unit/test_architecture.py``)."""

_ZSH_DATASETS: Final = f"""\
_odf_node_datasets() {{
  local -a names
  names=(${{(f)"$({_NAMES})"}})
  compadd -a names
}}"""
_ONLY_EVAL: Final = "if [[ $zsh_eval_context[-1] == eval ]]; then\n"
_EVAL_OR_SOURCE: Final = """\
if [[ $zsh_eval_context[-1] == (eval|file) ]]; then
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "Once, then in every new shell:\n" + "\n".join(
        f"  odf-node completion {shell} > {place}" for shell, place in _PLACES.items()
    )
    parser.add_argument("shell", choices=tuple(_PLACES), metavar="SHELL", help="bash, zsh or fish")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Write the script; a key stroke starts a program for names of datasets alone, which no script could know."""
    parser = build_parser(None, is_whole=True)
    for action in _iter_actions(parser):
        if isinstance(action.metavar, str) and any(word in action.metavar for word in _FILES):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # how shtab is told
        elif isinstance(action.metavar, str) and _DATASET in action.metavar:
            action.complete = _complete_datasets()  # type: ignore[attr-defined]
    script = shtab.complete(parser, shell=arguments.shell)
    context.console.raw(_registering_when_sourced(script) if arguments.shell == "zsh" else script)
    return 0


def _complete_datasets() -> dict[str, Any]:
    """Say how each shell gets names; zsh when Tab asks, as shtab's way starts a program for each place."""
    stated = dict(shtab.cmd(_NAMES))
    return stated | {"zsh": "_odf_node_datasets", "preamble": {**stated["preamble"], "zsh": _ZSH_DATASETS}}


def _registering_when_sourced(script: str) -> str:
    """Let zsh register what it reads by ``source``, too; shtab's does where ``eval`` does."""
    assert script.count(_ONLY_EVAL) == 1
    return script.replace(_ONLY_EVAL, _EVAL_OR_SOURCE)


def _iter_actions(parser: argparse.ArgumentParser) -> "Iterator[argparse.Action]":
    assert isinstance(parser, CommandParser)
    for each in parser.iter_parsers():
        yield from each._actions  # noqa: SLF001 - argparse gives it no public name
