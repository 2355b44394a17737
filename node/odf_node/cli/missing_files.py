"""Bring files that a command needs and that are not here by choice, with progress, before the command runs (PART-9)."""

import signal
from collections.abc import Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from odf_node.cli.awaiting import finish_or_stop
from odf_node.cli.context import CommandContext
from odf_node.cli.stopping import SIGNALS

if TYPE_CHECKING:
    from odf_node.ports.progress import ProgressLine
    from odf_node.records.datasets import DatasetRecord
    from odf_protocol.multihash import Multihash

_Result = TypeVar("_Result")


def bring_files(
    context: CommandContext, needed: "Sequence[tuple[DatasetRecord, Collection[Multihash]]]", progress: "ProgressLine"
) -> None:
    """Bring what is listed; where nothing is, nothing is loaded.

    Raises:
        ObjectsAbsentError: It can be had nowhere now.
        RejectedError: What came is not what its blocks say.
        Stopped: A signal came.
    """
    if not needed:
        return

    async def bring() -> None:
        for record, hashes in needed:
            await context.node.bringing.bring(record, hashes, progress)

    finish_transfers(context, bring())


def finish_transfers(context: CommandContext, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Wait for what comes from others, which a signal stops.

    Raises:
        Stopped: A signal came.
    """
    results: list[_Result] = []

    async def finish() -> int:
        results.append(await work)
        return 0

    context.limit_transfers()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        finish_or_stop(finish(), context.stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return results[0]
