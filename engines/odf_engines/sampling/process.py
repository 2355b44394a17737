"""Looking at the beginning of a file in a sandbox of its own: what a hostile file costs, or breaks, stays there.

Source: clause ING-24 in ``spec/plug-ins/drafts.md``; SANDBOX-11.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from odf_engines.confined.process import SandboxedProcess
from odf_engines.confined.program import ConfinedProgram, ReportedError
from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, InvalidSourceError, LimitExceededError
from odf_engines.guest_packages import shapefile_mounts
from odf_engines.host.reader_process import command_of_reader, profile_of_reader
from odf_engines.plug_in_names import PLANS, READERS_LIBRARIES
from odf_engines.sandbox.layers import Layer, accepted_layers, missing_layers
from odf_engines.sandbox.profile import Mount
from odf_protocol.errors import UnsupportedError

_PACKAGES: Final = ("msgspec", "numpy", "pyarrow", *READERS_LIBRARIES)
_LIMITS: Final = Limits(memory_bytes=1024**3, wall_s=60.0, cpu_s=60, output_bytes=0, processes=64)  # guess
_MAX_RECORDS: Final = 100_000  # as of texts
_MAX_ANSWER_BYTES: Final = 3 * 1024**2  # of records; the header of an answer has 4 MiB at most


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """What a file holds.

    Attributes:
        names: Of the columns, as the read step calls them.
        types: ODF types of those whose type the file itself says.
        parameters: Of the reader.
        doubts: What is uncertain.
        records: Texts in the order of ``names``.
        is_whole: These are all records of the file.
        broken: How many more cannot be read.
        reason: Why the first of them cannot.
    """

    names: tuple[str, ...]
    types: Mapping[str, str]
    parameters: Mapping[str, str | int | dict[str, str]]
    doubts: tuple[str, ...]
    records: tuple[tuple[str | None, ...], ...]
    is_whole: bool
    broken: int
    reason: str = ""

    def __post_init__(self) -> None:
        if any(len(each) != len(self.names) for each in self.records):
            raise ValueError("a record has another number of texts than there are columns")


def look_at_table(kind: str, path: Path, *, shown_as: str, is_whole: bool) -> FoundTable:
    """Find how a file is to be read, and read its first records so.

    Args:
        kind: ``Parquet``, ``EsriShapefile``, or a reader that says how a file of its kind is to be read.
        path: The file, or its beginning.
        shown_as: How messages call it.
        is_whole: It is all.

    Raises:
        UnsupportedError: What would say so is not installed.
        InvalidSourceError: It is not of this kind, has no rows in columns, or costs too much.
        SandboxUnavailableError: Nothing can be isolated on this machine.
    """
    if (place := PLANS.find_place(kind)) is None:
        raise UnsupportedError("kind of file for a first manifest", found=kind, supported=PLANS.describe_installed())
    has_filter = Layer.FILTER not in missing_layers(accepted_layers(os.environ))
    given = (Mount(path, "/sample/file"), *shapefile_mounts("/runtime/site"))
    brought = {place[0].partition(".")[0]} & {*PLANS.packages()}
    profile = profile_of_reader((*_PACKAGES, *brought), *given, has_filter=has_filter)
    bounds = {"is_whole": is_whole, "max_records": _MAX_RECORDS, "max_bytes": _MAX_ANSWER_BYTES}
    request = {**bounds, "module": place[0], "attribute": place[1]}
    process = SandboxedProcess(profile, command_of_reader("odf_engines.sampling.looking", _LIMITS), _LIMITS)
    try:
        answer = ConfinedProgram(process).ask("look", request, wall_s=_LIMITS.wall_s)
        return _read_answer(answer.header["result"], shown_as)
    except ReportedError as error:
        raise InvalidSourceError(shown_as, str(error.fields)) from None
    except (EngineFailureError, LimitExceededError) as error:
        raise InvalidSourceError(shown_as, f"looking at it was stopped: {error}") from error
    finally:
        process.close()


def _read_answer(result: Any, shown_as: str) -> FoundTable:
    """Check what the program says; a hostile file may have taken it over."""
    try:
        return msgspec.convert(result, FoundTable)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise InvalidSourceError(shown_as, "looking at it gave no answer that makes sense") from error
