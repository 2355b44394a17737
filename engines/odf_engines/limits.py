"""How much one request to an engine may use.

Source: clause ENGINE-16 in ``spec/extensions/engine-contract.md``.
"""

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one request may use (ENGINE-16). All defaults are guesses that fit a laptop.

    Attributes:
        memory_bytes: Resident memory of all processes of the session. A session that keeps half of the room that it
            had when it was fresh starts its processes anew before the next request.
        wall_s: Time from request to answer, start of the engine not counted.
        cpu_s: Processor time of all processes of the session together. A session whose processes have used half of it
            starts them anew before the next request.
        output_bytes: Size of one output file, and of all files the session has on disk together with its scratch.
        output_rows: Rows of one output.
        decoded_bytes: All values of one output as Arrow holds them, however small its file is.
        processes: Processes and threads of the session together.
    """

    memory_bytes: int = 2048 * _MIB
    wall_s: float = 600.0
    cpu_s: int = 3600
    output_bytes: int = 4096 * _MIB
    output_rows: int = 100_000_000
    decoded_bytes: int = 65_536 * _MIB
    processes: int = 512
