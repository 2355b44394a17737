"""Offer a dataset of this node to another one, which verifies everything before it accepts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from odf_node.datasets.exporting import Exporting
from odf_node.datasets.presence import Presence
from odf_node.home import Home
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.ports.layouts import LayoutTarget
from odf_node.ports.observing import Observer, Run, RunKind, place_of, version_of
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.progress import ProgressLine
from odf_node.ports.pushes import PushedHead, PushOutcome
from odf_node.readable_inputs import ANYBODY, may_see_records
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import ObjectNotFoundError
from odf_node.threads import finish_in_thread

SendPush = Callable[[str, PushedHead, str | None, OnBytes | None], Awaitable[PushOutcome]]


@dataclass(frozen=True, slots=True)
class Pushing:
    """The use case behind ``odf-node push``."""

    home: Home
    send: SendPush
    exporting: Exporting
    find_files: Callable[[str, str], LayoutTarget | None]
    """The place at an address to write files to, None for the address of a server."""
    observer: Observer

    async def push(
        self,
        record: DatasetRecord,
        url: str,
        *,
        token: str | None,
        progress: ProgressLine,
        force: bool = False,
        public: bool = False,
    ) -> PushOutcome:
        """Bring the other node's copy up to our head.

        Args:
            record: Of the dataset.
            url: The other node, and what the dataset is called there.
            token: What the other node gave.
            progress: Hears how far it is.
            force: Ask to replace another history there.
            public: Ask to show a dataset that is new there to everybody.

        Raises:
            PushRejectedError: The other node checked and rejected; ``reason`` and ``report`` say why.
            PeerForbidsError: It wants a token, or another one.
            PeerUnavailableError: It does not answer.
            ObjectsAbsentError: The other node needs files that are not here.
            FrozenDatasetError: Two histories of the dataset are signed.
        """
        run = Run(kind=RunKind.PUSH, dataset=version_of(record), peer=place_of(url))
        with self.observer.observing(run):
            return await self._push(record, url, token=token, progress=progress, force=force, public=public)

    async def _push(
        self, record: DatasetRecord, url: str, *, token: str | None, progress: ProgressLine, force: bool, public: bool
    ) -> PushOutcome:
        Disputes(self.home.store).require_undisputed(record.id, record.name)
        files = self.find_files(url, record.name)
        if files is not None:
            report = await self.exporting.export(record, files, progress)
            return PushOutcome(
                url=report.url, known_head=report.known, sent_blocks=report.new_blocks, sent_bytes=report.written_bytes
            )
        signed_head = self.home.store.find_signed_head(record.id)
        proposed = PushedHead(
            dataset_id=record.id,
            head=record.head,
            signed_head=signed_head.raw if signed_head else None,
            key_events=KeyLogs(self.home.store).documents_about(record.id),
            replaces_history=force,
            is_public=public,
            with_records=may_see_records(self.home.store, record, ANYBODY),
        )
        progress.on_progress(f"{record.name}: pushing to {url}")
        try:
            return await self.send(url, proposed, token, progress.advance)
        except ObjectNotFoundError:
            # Which files the other node lacks is known only now.
            await finish_in_thread(lambda: Presence(self.home.store, self.home.objects).require(record))
            raise
