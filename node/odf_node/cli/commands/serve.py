"""``odf-node serve``: run the node."""

import argparse
import os
from pathlib import Path
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import HIGHEST_PORT, whole_number
from odf_node.configuration import find_configuration_file
from odf_node.daemon.reloading import Setting
from odf_node.daemon.serving import serve

TOPIC: Final = "exchange with others"
HELP: Final = "run the node: serve datasets, take pushes"
EXAMPLES: Final = """\
serve
serve --address 0.0.0.0 --http-port 8080
serve --config odf-node.toml --check
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        "[[notice]] in the settings names receivers of a signed POST about new blocks. A receiver verifies it by the "
        "did:key of 'odf-node inspect node': an Ed25519 signature of RFC 9421 over method, authority, path, query and "
        "content-digest; spec/notices.md has a function that does it"
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings in TOML (default: $ODF_NODE_CONFIG, else odf-node.toml in the home if it is there); "
        "read again at SIGHUP",
    )
    parser.add_argument("--check", action="store_true", help="read the settings, say what is wrong with them, and end")
    parser.add_argument("--address", metavar="A", help="listen there (default: 127.0.0.1, this machine only)")
    parser.add_argument(
        "--http-port",
        type=whole_number(0, HIGHEST_PORT),
        metavar="N",
        help="listen on this port (default: 8080; 0: any free one)",
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="write the address there once requests are answered"
    )


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Serve until told to stop (Ctrl-C or SIGTERM); running requests are finished first."""
    named = {"address": arguments.address, "port": arguments.http_port}
    setting = Setting(
        find_configuration_file(arguments.config, os.environ, context.node.home.folder.path),
        os.environ,
        {"listen": {name: value for name, value in named.items() if value is not None}},
    )
    if arguments.check:
        setting.load()
        context.console.note(f"{setting.path or 'the environment'}: every setting can be used")
        return 0
    await serve(context.node, setting, ready_file=arguments.ready_file, console=context.console)
    return 0
