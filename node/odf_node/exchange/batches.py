"""Pull several datasets, inputs first, and know which of them were made from inputs that stayed behind (REPO-4)."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from odf_node.acceptance.offers import Portion
from odf_node.exchange.pull_planning import PullPlanner, PullTarget
from odf_node.exchange.pulling import Pulling, PullReport, PullWishes
from odf_node.exchange.remotes import Remotes
from odf_node.ports import Origin, RemoteDirection
from odf_node.ports.progress import ProgressLine
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError

ShowProgress = Callable[[PullTarget], AbstractContextManager[ProgressLine]]


@dataclass(frozen=True, slots=True)
class PullOutcome:
    """What became of one target.

    Attributes:
        target: Which.
        report: What was done; None where the pull failed.
        failure: Why it failed, or why it ended before its end.
        behind: Inputs of an own derivative that are older here than they could be, because their pulls failed.
    """

    target: PullTarget
    report: PullReport | None
    failure: OdfError | None = None
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchPulling:
    """The use case behind ``odf-node pull`` of whatever number of datasets."""

    pulling: Pulling
    planner: PullPlanner
    remotes: Remotes

    async def pull(
        self, targets: Sequence[PullTarget], wishes: PullWishes, show: ShowProgress, *, keeps_aliases: bool
    ) -> AsyncIterator[PullOutcome]:
        """Pull one after the other; one that fails does not stop the others.

        Args:
            targets: Inputs before what is derived from them.
            wishes: Of all of them; name and identity of the one that is named by its address.
            show: Opens the line on which one tells how far it is.
            keeps_aliases: Where a dataset came from is remembered as a pull alias.
        """
        own = [target.record is not None and target.record.origin is Origin.OWN for target in targets]
        behind: dict[DatasetId, str] = {}
        for target, is_own in zip(targets, own, strict=True):
            try:
                with show(target) as progress:
                    # Where there are others' datasets, the portion is about those; with own ones alone, it makes no
                    # sense.
                    wished = replace(wishes, portion=Portion.EVERYTHING) if is_own and not all(own) else wishes
                    report = await self.pulling.pull(target, _wishes_of(target, wished), progress)
            except OdfError as error:
                if target.record is not None:
                    behind[target.record.id] = target.label
                yield PullOutcome(target, None, error)
                continue
            if keeps_aliases and target.alias is not None:
                self.remotes.add_alias(report.record, RemoteDirection.PULL, target.alias)
            failure = getattr(report, "failure", None)
            inputs = self.planner.list_inputs(report.record)
            stale = tuple(behind[each] for each, _ in inputs if each in behind) if is_own else ()
            if failure is not None or stale:
                behind[report.record.id] = target.label
            yield PullOutcome(target, report, failure, stale)


def _wishes_of(target: PullTarget, wishes: PullWishes) -> PullWishes:
    """Name and identity are those of the dataset that the user named, not of its inputs."""
    return wishes if target.alias is not None else replace(wishes, local_name=None, expected_id=None)
