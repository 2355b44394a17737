"""What takes pushes and rows for the daemon, loaded when the first come: it takes longer than all the rest."""

import asyncio

from odf_engines.errors import InvalidSourceError, LimitExceededError
from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.datasets.writer import find_writing_time
from odf_node.errors import UsageError
from odf_node.ingest.batch import BatchRejectedError
from odf_node.ingest.push_sources import choose_push_source, list_media_types
from odf_node.ports.peer_client import PeerHead
from odf_node.ports.pushes import UploadedDataset
from odf_node.ports.row_intake import NoRowsTakenError, RowFormatError, SentRows, TakenRows
from odf_node.records.access import ReadGrants
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import DatasetNotFoundError


class LatePushJudge:
    """``PushReceiver`` of a node; the daemon is ready before it is loaded."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def consider(self, proposed: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        """See ``PushReceiver``."""
        judge = await asyncio.to_thread(lambda: self._node.push_judge)
        await judge.consider(proposed, actor=actor, reads=reads)

    async def receive(
        self, proposed: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """See ``PushReceiver``."""
        judge = await asyncio.to_thread(lambda: self._node.push_judge)
        return await judge.receive(proposed, actor=actor, reads=reads, published=published, force=force)


_SHOWN_AS = "the rows that were sent"


class LateRowIntake:
    """``RowIntake`` of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def check(self, record: DatasetRecord, source_name: str | None, media_type: str) -> None:
        """See ``RowIntake``."""
        view = load_view(self._node.store, record.id)
        try:
            accepted = list_media_types(view, choose_push_source(record, view, source_name))
        except UsageError as error:
            raise NoRowsTakenError(str(error)) from error
        if media_type not in accepted:
            raise RowFormatError(media_type, accepted)

    def take(self, record: DatasetRecord, rows: SentRows) -> TakenRows:
        """See ``RowIntake``."""
        node = self._node
        # Others were taken in while these waited for their turn.
        found = node.store.find_dataset(record.id)
        if found is None:
            raise DatasetNotFoundError(record.id)
        record = found
        try:
            with rows.path.open("rb") as file:
                report = node.ingestor.push(
                    record,
                    file,
                    source_name=rows.source_name,
                    shown_as=_SHOWN_AS,
                    event_time=rows.event_time,
                    system_time=find_writing_time(node.store, node.clock, record.id),
                    key=rows.key,
                    caller=rows.token_id,
                )
        except BatchRejectedError as error:
            raise NoRowsTakenError(str(error), error.bad_rows, error.reasons) from error
        except (InvalidSourceError, LimitExceededError, UsageError) as error:
            raise NoRowsTakenError(str(error)) from error
        if not (report.up_to_date or report.is_repeated):
            node.home.audit.note(
                "ingest", record.name, f"{report.counts.describe_whole()}, over HTTP", actor=rows.token_id
            )
        return TakenRows(
            head=str(report.record.head.hash),
            new_blocks=report.new_blocks,
            new_rows=report.new_rows,
            counts=report.counts,
            reasons=report.quarantine_reasons,
            warnings=report.warnings,
            up_to_date=report.up_to_date,
            repeated=report.is_repeated,
        )

    def stop(self) -> None:
        """See ``RowIntake``."""
        self._node.stop_engines()
