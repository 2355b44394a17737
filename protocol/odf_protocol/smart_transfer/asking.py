"""What both clients share: a refusal that they are told, and answers about the objects that they asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from odf_protocol.errors import RejectedError
from odf_protocol.smart_transfer.messages import ObjectFile, PullStrategy, PushStrategy
from odf_protocol.smart_transfer.problems import Problem


@dataclass(frozen=True, slots=True)
class Refused:
    """The other side says no."""

    problem: Problem


def check_answered(asked: Sequence[ObjectFile], strategies: Sequence[PullStrategy] | Sequence[PushStrategy]) -> None:
    """Check that each object that was asked for is answered once, and no other.

    What the answers say is written to disk, or uploaded: an address counts only for an object that was asked for.

    Raises:
        RejectedError: SMART-7.
    """
    found = {item.object_file.hash for item in strategies}
    wanted = {item.hash for item in asked}
    if found != wanted or len(strategies) != len(asked):
        raise RejectedError(
            "SMART-7 answers-what-was-asked", expected=f"{len(wanted)} objects", found=f"{len(found)} others"
        )
