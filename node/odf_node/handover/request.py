"""What a client sends to the fork server: one message of texts, the streams beside it.

A length of four bytes (big endian), then fields, each ended by a NUL, which no word, variable or path can contain. The
descriptors that travel with it are standard input, output and error, the working folder, and the worker's end of a
channel to the client. Loaded by every command before anything else, so it uses next to nothing.
"""

import os
import sys

from odf_node import __version__

TYPE_CHECKING = False  # as in ``typing``, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

SOCKET_NAME: "Final" = "commands.sock"
SWITCH_VARIABLE: "Final" = "ODF_NODE_COMMANDS_HAND_OVER"
MAX_REQUEST_BYTES: "Final" = 8 * 1024 * 1024  # guess: systems take 2 MiB of words and variables by default (ARG_MAX)
LENGTH_BYTES: "Final" = 4
DESCRIPTORS: "Final" = 5

READY: "Final" = b"r"
"""Worker to client: everything is as the client has it; nothing was begun."""
GO: "Final" = b"g"
"""Client to worker: begin. From here on the client does not do the work by itself."""
ENDED: "Final" = b"e"
"""Worker to client: the command has ended; a byte with its exit code follows."""
KILLED: "Final" = b"k"
"""Fork server to client: a signal ended the worker; a byte with its number follows."""


def identity_of_program() -> "list[str]":
    """Name this program and how its interpreter was started; a fork server of another identity refuses."""
    package = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes longer to load than all of this
    started = (tuple(sys.flags), sys.warnoptions, sys._xoptions)  # noqa: SLF001 - the documented name of these options
    streams = [
        (stream.encoding, stream.errors, getattr(stream, "write_through", None))
        for stream in (sys.stdin, sys.stdout, sys.stderr)
    ]
    return [__version__, package, sys.prefix, sys.version, repr(started), repr(streams)]


def encode_request(words: "Sequence[str]", environment: "Mapping[bytes, bytes]") -> bytes:
    """Write the message of a command.

    Args:
        words: What stands behind ``odf-node``.
        environment: Variables of the client, all of them.
    """
    fields = [os.fsencode(text) for text in (*identity_of_program(), str(len(words)), *words)]
    fields += [name + b"=" + value for name, value in environment.items()]
    body = b"".join(field + b"\0" for field in fields)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode_request(body: bytes) -> "tuple[list[str], list[str], dict[str, str]]":
    """Read the message without its length.

    Returns:
        The client's identity, its words and its environment.

    Raises:
        ValueError: It is no such message.
    """
    size = len(identity_of_program())
    fields = body.split(b"\0")
    if len(fields) < size + 2 or fields.pop():
        raise ValueError("a request for a command is cut off")
    texts = [os.fsdecode(field) for field in fields]
    identity, count, rest = texts[:size], int(texts[size]), texts[size + 1 :]
    if not 0 <= count <= len(rest):
        raise ValueError("a request for a command has fewer words than it says")
    variables = (text.partition("=") for text in rest[count:])
    return identity, rest[:count], {name: value for name, _, value in variables}
