"""What of this node wants doing: what is unsound, stale or waiting, and the command that fixes it."""

from collections.abc import Iterator
from dataclasses import dataclass

from odf_node.acceptance.refusals import Rejections
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.datasets.chains import load_view
from odf_node.datasets.quarantined_rows import QuarantineReader
from odf_node.derive.engine_usage import EngineUsage
from odf_node.derive.holding import find_holds
from odf_node.derive.steps import StepBuilder
from odf_node.derive.waiting import find_waited_for
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.plug_ins import list_failures
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.evidence import DocumentKind
from odf_node.upkeep.status_findings import Condition, StatusFinding, iter_reported
from odf_node.wording import count_of
from odf_protocol.chain import ChainState
from odf_protocol.chain.stored_state import decode_state
from odf_protocol.coverage import decode_progress
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The use case behind ``odf-node status``: reads what is known, asks nobody, changes nothing."""

    home: Home
    refusals: Rejections
    engine_usage: EngineUsage

    def list_findings(self) -> list[StatusFinding]:
        """List what wants doing, the worst first."""
        found = [*self._of_datasets(), *self._of_node(), *iter_reported(self.home), *_of_plug_ins()]
        order = list(Condition)
        return sorted(found, key=lambda each: order.index(each.condition))

    def _of_datasets(self) -> Iterator[StatusFinding]:
        # Asked once for all: few have any, and there may be thousands of datasets.
        disputed = self.home.store.list_subjects(DocumentKind.EQUIVOCATION)
        incomplete = self.home.store.list_incomplete_datasets()
        quarantined = self.home.store.list_datasets_with_quarantine()
        disputes = Disputes(self.home.store)
        records = self.home.store.list_datasets()
        states = self.home.store.get_chain_states(record.id for record in records)
        for record in records:
            name = record.name
            if record.id in disputed and (obstacle := disputes.find_obstacle(record.id)) is not None:
                yield StatusFinding(Condition.UNSOUND, name, obstacle, f"odf-node evidence show {name}")
                continue
            yield from self._of_files(record, is_incomplete=record.id in incomplete)
            if record.origin is not Origin.OWN:
                yield from self._of_others(record)
            elif record.kind is not DatasetKind.ROOT:
                yield from self._of_own_derivative(record)
            elif record.id in states and not decode_progress(states[record.id]).row_count:
                yield _of_empty_root(name, decode_state(states[record.id]))
            if record.id in quarantined:
                yield from self._of_quarantine(record)

    def _of_files(self, record: DatasetRecord, *, is_incomplete: bool) -> Iterator[StatusFinding]:
        name = record.name
        marked = self.home.store.list_absent_objects(record.id) if is_incomplete else ()
        absent = sum(not self.home.objects.has(each) for each in marked)
        unchecked = find_unchecked(self.home.store, record)
        if unchecked is not None:
            what = f"taken unchecked: {', '.join(unchecked.what)}"
            yield StatusFinding(Condition.WAITING, name, what, f"odf-node pull {name}")
        elif absent:
            what = f"{count_of(absent, 'file')} not here"
            yield StatusFinding(Condition.WAITING, name, what, f"odf-node cache rebuild {name}")

    def _of_others(self, record: DatasetRecord) -> Iterator[StatusFinding]:
        seen = self.home.store.find_seen_head(record.id)
        if seen is not None and (missing := seen.sequence_number - record.head.sequence_number) > 0:
            what = f"{count_of(missing, 'block')} behind what {seen.source} has"
            yield StatusFinding(Condition.STALE, record.name, what, f"odf-node pull {record.name}")

    def _of_quarantine(self, record: DatasetRecord) -> Iterator[StatusFinding]:
        rows, batches = QuarantineReader(self.home.store, self.home.objects).count_all_waiting(record)
        if rows or batches:
            kept = [count_of(rows, "row")] if rows else []
            kept += ["1 batch" if batches == 1 else f"{batches:,} batches"] if batches else []
            what = f"in quarantine: {', '.join(kept)}"
            yield StatusFinding(Condition.WAITING, record.name, what, f"odf-node quarantine show {record.name}")

    def _of_own_derivative(self, record: DatasetRecord) -> Iterator[StatusFinding]:
        name = record.name
        try:
            view = load_view(self.home.store, record.id)
            holds = find_holds(self.home, record)
            planned = StepBuilder(self.home.store, self.home.objects, holds).plan_next(view, None)
        except OdfError as error:
            yield StatusFinding(Condition.UNSOUND, name, str(error), f"odf-node verify {name}")
            return
        for hold in holds.values():
            condition = Condition.FAILING if hold.fails else Condition.WAITING
            yield StatusFinding(condition, name, hold.describe(), hold.command)
        waited_for = () if view.schema is None else find_waited_for(self.home.store, record)
        for each in waited_for:
            yield StatusFinding(Condition.WAITING, name, each.describe(), each.command)
        if waited_for and view.watermark is None:
            return  # a step would give nothing that a block could say
        rows = sum(each.offset_interval.row_count for each in planned if each.offset_interval)
        if not all(each.is_empty for each in planned):
            what = f"{count_of(rows, 'new row')} in its inputs" if rows else "news of its inputs"
            yield StatusFinding(Condition.STALE, name, what, f"odf-node pull {name}")

    def _of_node(self) -> Iterator[StatusFinding]:
        missing = self.home.store.list_expected_objects() - set(self.home.objects.iter_hashes())
        # A second look, for what another command dropped between the two lists.
        expected = self.home.store.list_expected_objects() if missing else missing
        lost = [each for each in missing & expected if not self.home.objects.has(each)]
        if lost:
            what = f"{count_of(len(lost), 'file')} that should be here {'is' if len(lost) == 1 else 'are'} not"
            yield StatusFinding(Condition.UNSOUND, None, what, "odf-node repair")
        if refused := sum(1 for _ in self.refusals.iter_reports()):
            yield StatusFinding(
                Condition.WAITING, None, f"{count_of(refused, 'refusal')} kept", "odf-node inspect refusals"
            )
        for waiting in self.engine_usage.list_waiting():
            wanted = f" (digest {' or '.join(waiting.digests)})" if waiting.digests else ""
            for name in waiting.datasets:
                what = f"its engine '{waiting.engine}'{wanted} is not here"
                yield StatusFinding(Condition.WAITING, name, what, f"odf-node engine add {waiting.engine} FILE")
        if self.home.objects.has_leftovers(now=self.home.clock.now()):
            yield StatusFinding(Condition.WAITING, None, "files that no dataset needs", "odf-node gc")


def _of_plug_ins() -> Iterator[StatusFinding]:
    """Name the plug-ins of other packages that cannot be used (PLUG-3)."""
    for each in list_failures():
        what = f"plug-in '{each.name}' of package '{each.package}' cannot be used: {each.reason}"
        yield StatusFinding(Condition.FAILING, None, what, "odf-node doctor")


def _of_empty_root(name: str, state: ChainState) -> StatusFinding:
    """Say how it gets its first rows: it fetches them itself, or somebody hands them in."""
    if state.has_polling_source:
        return StatusFinding(Condition.WAITING, name, "it has no rows yet", f"odf-node pull {name}")
    if state.push_sources:
        return StatusFinding(Condition.WAITING, name, "it has no rows yet", f"odf-node ingest {name} FILE")
    return StatusFinding(
        Condition.WAITING, name, "it has no rows, and no source of any", f"odf-node change {name} MANIFEST"
    )
