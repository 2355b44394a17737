"""The contract of the plug-in that makes datasets tables of a Spark session of the user's.

Source: clause PYTHON-8 in ``spec/python.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.plug_ins import load_plug_ins, require_plug_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GROUP: Final = "odf_node.spark_sessions"
NAME: Final = "spark_tables"


class SessionTables(ABC):
    """The tables of a session."""

    @property
    @abstractmethod
    def problems(self) -> dict[str, str]:
        """By name, why a dataset is no table of the session."""

    @abstractmethod
    def refresh(self) -> None:
        """Show the newest version of every dataset."""

    @abstractmethod
    def table(self, name: str, *, as_of: str | None = None, changes: bool = False) -> "DataFrame":
        """Give a dataset, or one at an address, as a frame of the session."""

    @abstractmethod
    def close(self) -> None:
        """Take the tables out of the session."""


class SparkSessions(ABC):
    """What the entry point leads to."""

    @abstractmethod
    def make_tables(self, session: object, home: Path | None, names: Sequence[str]) -> SessionTables:
        """Make the datasets of a home, or those that names and patterns mean, tables of a session."""


def make_spark_tables(session: object, home: Path | None, names: Sequence[str]) -> SessionTables:
    """Make the datasets of a home tables of a Spark session.

    Args:
        session: Of the caller.
        home: The folder of the home; None: the default one.
        names: Names and patterns of datasets; empty: all.

    Raises:
        UsageError: The plug-in, its extra or a version of Spark is missing, or the session is none.
        UnknownDatasetError: A name or pattern means none.
    """
    require_plug_in(GROUP, NAME, "odf_node.spark_tables()")
    found: Mapping[str, SparkSessions] = load_plug_ins(GROUP, SparkSessions)
    return found[NAME].make_tables(session, home, names)
