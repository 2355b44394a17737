"""What is kept about an added engine beside its files, and where things stand inside its sandbox.

Source: clauses ADDED-1, ADDED-5, ADDED-6 and ADDED-15 in ``spec/plug-ins/foreign.md``.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from odf_protocol.errors import MalformedError

PROGRAM = "/opt/engine/program"
"""An engine that is one file."""

INPUTS = "/opt/engine/in"
OUTPUTS = "/opt/engine/out"

OWN_PLACES = frozenset({"exchange", "runtime", "scratch"})
"""Folders at the top that are the node's; an archive that has one is rejected."""

MOUNT_POINTS = ("opt/engine/in/", "opt/engine/out/", "etc/passwd", "etc/group", "etc/hosts", "etc/nsswitch.conf")
"""What has to be in a root folder, since nothing can be made in it later; those that end with a slash are folders."""

CONTRACT_PORT: Final = 2884
"""At which engines of the reference implementation answer; the text of the specification says 5544."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")  # as engines are called in manifests, and folders on any disk
_NAME_CHARACTERS = 40
_MAX_WORDS = 1000  # guess: of a command or an environment; container images have a few
_WORD_CHARACTERS = 32_768  # guess: a class path of a thousand archives
_ALL_CHARACTERS = 131_072  # guess: kept as JSON, with escapes of six, they fit into what is read of a description
_MAX_PORT = 65_535


class AddedForm(StrEnum):
    """What an engine was added from."""

    PROGRAM = "program"  # one file, run on the libraries of this machine
    ROOT = "root"  # the root folder of a container, run on its own libraries


class EngineStart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an engine is started: part of what its digest covers.

    Attributes:
        command: Program and arguments, as the sandbox sees them.
        environment: ``NAME=value``, in order.
        folder: Where it starts.
        port: Where it answers, on the loopback of its sandbox.
    """

    command: tuple[str, ...]
    environment: tuple[str, ...] = ()
    folder: str = "/"
    port: int = CONTRACT_PORT

    def check(self) -> None:
        """Check what came from a stranger's archive.

        Raises:
            MalformedError: Nothing to start, words that no program can be given, or a port that is none.
        """
        if not self.command or not self.command[0]:
            raise MalformedError("engine", where="command", expected="a program to start", found="none")
        check_words("engine", self.command, self.environment, self.folder)
        if not 0 < self.port <= _MAX_PORT:
            raise MalformedError("engine", where="port", expected=f"1 to {_MAX_PORT}", found=self.port)


class EngineDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An added engine.

    Attributes:
        name: As transforms name it.
        version: For people; what its archive calls itself, empty where it does not.
        digest: Of its contents and of how it is started, text.
        form: What it was added from.
        start: How it is started.
        file_bytes: Size of the file that it was added from.
        added_at: RFC 3339.
    """

    name: str
    version: str
    digest: str
    form: AddedForm
    start: EngineStart
    file_bytes: int
    added_at: str


def check_engine_name(name: str) -> str:
    """Return a name for an engine in the one spelling that is kept.

    Raises:
        MalformedError: It is none.
    """
    lower = name.lower()
    if _NAME.fullmatch(lower) is None or len(lower) > _NAME_CHARACTERS:
        expected = f"letters and digits, with single hyphens between, at most {_NAME_CHARACTERS}"
        raise MalformedError("name of an engine", expected=expected, found=name)
    return lower


def check_words(what: str, command: Sequence[str], environment: Sequence[str], folder: str) -> None:
    """Check how an archive says that it is started.

    Raises:
        MalformedError: Words that no program can be given, or a folder that is none.
    """
    if (characters := sum(map(len, (*command, *environment, folder)))) > _ALL_CHARACTERS:
        expected = f"at most {_ALL_CHARACTERS} characters in all words of its start"
        raise MalformedError(what, expected=expected, found=characters)
    for where, words in (("command", command), ("environment", environment), ("folder", (folder,))):
        if len(words) > _MAX_WORDS:
            raise MalformedError(what, where=where, expected=f"at most {_MAX_WORDS} words", found=len(words))
        for word in words:
            if "\0" in word or len(word) > _WORD_CHARACTERS:
                expected = f"words of at most {_WORD_CHARACTERS} characters without U+0000"
                raise MalformedError(what, where=where, expected=expected, found=word)
    if any(not word.partition("=")[0] or "=" not in word for word in environment):
        raise MalformedError(what, where="environment", expected="NAME=value", found=str(environment))
    if not folder.startswith("/"):
        raise MalformedError(what, where="folder", expected="an absolute path", found=folder)
