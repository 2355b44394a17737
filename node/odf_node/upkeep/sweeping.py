"""Remove what nothing names: what killed writers left, what is cached, evidence beyond its share."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from odf_node.acceptance.refusals import Rejections
from odf_node.commit_point import sweep_leftovers
from odf_node.engine_workspace import sweep_workspaces
from odf_node.home import Home
from odf_node.home_folder import sweep_dataset_folders
from odf_node.ports.objects import SweepReport
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The use case. ``now`` is the machine's clock whatever the run writes with: files are dated by it."""

    home: Home
    refusals: Rejections
    now: Callable[[], Timestamp]

    def clean_up(self) -> None:
        """Remove what writers that were killed left behind; costs next to nothing where there is nothing."""
        sweep_leftovers(self.home.store, self.home.objects, now=self.now())
        sweep_workspaces(self.home.folder.engines)

    def collect_garbage(self, *, dry_run: bool = False) -> SweepReport:
        """Remove (dry run: count) what nothing names and nobody goes on with, and rejections beyond their share."""
        report = self.home.objects.sweep(self.home.store.list_referenced_objects, now=self.now(), dry_run=dry_run)
        if not report.ran:
            return report
        count, freed_bytes = self.refusals.trim(dry_run=dry_run)
        if not dry_run:
            sweep_workspaces(self.home.folder.engines)
            # Of a dataset whose deletion was killed.
            sweep_dataset_folders(self.home.folder, lambda: (each.id for each in self.home.store.list_datasets()))
        return replace(report, staged_files=report.staged_files + count, freed_bytes=report.freed_bytes + freed_bytes)

    def clear_cache(self) -> SweepReport:
        """Remove everything that can be had again, also what was kept for pulls that may go on."""
        return self.home.objects.sweep(self.home.store.list_referenced_objects, now=self.now(), keep_arrived=False)
