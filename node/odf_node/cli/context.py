"""What every command gets: the node it works on, the time it writes with, the console it talks to."""

import argparse
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.cli.console import Console
from odf_node.composition import open_node
from odf_node.datasets.naming import find_missing_scheme
from odf_node.errors import UsageError
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_node.composition import Node
    from odf_node.configuration import Configuration
    from odf_node.records.datasets import DatasetRecord

TOLERATED_S: Final = 2  # guess: what time services correct at once without anybody noticing


@dataclass
class CommandContext:
    """One run of one command."""

    home: Path | None
    system_time: Timestamp | None
    console: Console = field(default_factory=Console)

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> "CommandContext":
        """Read the options that every command has.

        Raises:
            UsageError: ``--system-time`` is not an RFC 3339 time, or ``--home`` names no folder.
        """
        return cls(
            home=None if arguments.home is None else parse_folder(arguments.home),
            system_time=parse_time(arguments.system_time, option="--system-time") if arguments.system_time else None,
            console=Console(
                quiet=arguments.quiet,
                # A program asked, which may take both streams for one.
                has_progress=getattr(arguments, "output_format", None) != "json",
            ),
        )

    @cached_property
    def node(self) -> "Node":
        """The node, opened when a command first needs it."""
        try:
            return open_node(self.home, system_time=self.system_time)
        except RuntimeError as error:
            raise UsageError("this user has no home folder to keep a node in; name one with --home") from error

    def load_settings(self) -> "Configuration":
        """Read the settings of this home, and let the node keep to them (HOME-25, HOME-45, ING-17).

        Raises:
            ConfigurationError: They cannot be used.
        """
        settings = self.node.keep_to_settings()
        for line in settings.retired:
            self.console.warn(line)
        return settings

    def limit_transfers(self, *, rate: int | None = None, parallel: int | None = None) -> None:
        """Hold what this command moves to what was named (bytes a second; objects at once), or else to the settings.

        Raises:
            ConfigurationError: The settings cannot be used.
        """
        limits = self.load_settings().limits
        self.node.limit_transfers(
            limits.fetch_bytes_per_second if rate is None else rate,
            limits.parallel_transfers if parallel is None else parallel,
        )

    def stop(self) -> None:
        """End the engines at once, from any thread; what waits for them fails."""
        if "node" in self.__dict__:
            self.node.stop_engines()

    def __enter__(self) -> "CommandContext":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.stop()
        if "node" in self.__dict__:
            self.node.close()


def report_writing_time(context: CommandContext, record: "DatasetRecord") -> Timestamp:
    """Return the time of the dataset's next block; warn where the machine's clock is behind the newest one."""
    from odf_node.datasets.writer import find_writing_time  # here: it reads rows, which few commands do

    node = context.node
    time, shown = find_writing_time(node.store, node.clock, record.id), node.now()
    if time.seconds - shown.seconds > TOLERATED_S:
        context.console.warn(
            f"this machine's clock shows {shown}, which is before the newest block of '{record.name}'; "
            f"what is written now bears the time of that block, {time}: set the clock right"
        )
    return time


def parse_folder(text: str) -> Path:
    """Read the name of a folder that a user wrote.

    Raises:
        UsageError: It is empty, as when a script's variable is not set, or names the home of an unknown user.
    """
    if not text:
        raise UsageError("--home is empty; name a folder, or leave it out")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"--home {text}: there is no such user") from error


def parse_place(text: str) -> str:
    """Read where a dataset is; a file or folder gets the address that stays true wherever a later command is run."""
    return text if "://" in text else Path(text).expanduser().absolute().as_uri()


def parse_reference(text: str) -> str:
    """Read a reference to a dataset; what can only be a path becomes an address, everything else stays as it is.

    Raises:
        UsageError: It is an address but for how to get there.
    """
    address = find_missing_scheme(text)
    if address is not None:
        raise UsageError(f"'{text}' names a host, but no protocol; write the address as {address}")
    return parse_place(text) if text.startswith(("/", "./", "../", "~")) else text


def parse_time(text: str, *, option: str) -> Timestamp:
    """Read a time that a user wrote; a date alone means its first moment in UTC.

    Raises:
        UsageError: Not a time; the message names the option and shows the form.
    """
    try:
        return Timestamp.parse_or_day(text)
    except MalformedError as error:
        raise UsageError(f"{option} {text!r} is not a time; write it as 2020-10-01T12:00:00Z") from error
