"""Datasets elsewhere as tables of a question: taken and checked for it alone, in homes that end with it.

Source: clause QUERY-12 in ``spec/query.md``.
"""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from odf_engines.contract import QueryTable
from odf_node.acceptance.offers import Subset
from odf_node.composition import Node
from odf_node.configuration.declaration import QUERY_ENGINE
from odf_node.datasets.chains import iter_slices
from odf_node.errors import ProposalRejectedError, UsageError
from odf_node.exchange.pull_planning import PullTarget
from odf_node.exchange.pulling import PullOptions
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import ProgressLine
from odf_node.records.datasets import DatasetRecord
from odf_node.remote_names import STATE_SUFFIX, RemoteQuery, find_remote_names, quote_name, require_undefined
from odf_node.threads import finish_in_thread
from odf_node.wording import count_of
from odf_protocol.enums import DatasetKind
from odf_protocol.timestamp import Timestamp

MAX_BYTES: Final = 1 << 30
"""Of the slices that a question brings of one dataset.  # guess: who reads more than that wants to keep it"""
_SCHEMES: Final = ("http://", "https://")


@dataclass(slots=True)
class RemoteTables:
    """Brings them for one question after the other; what was brought is gone with ``close``."""

    node: Node
    max_bytes: int = MAX_BYTES
    _asked: dict[str, Node] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    async def bring(
        self, sql: str, *, engine: str | None, as_of: Timestamp | None, progress: ProgressLine
    ) -> RemoteQuery:
        """Take what a question names elsewhere, and name it in the question as it is called here.

        Args:
            sql: The question.
            engine: In whose SQL; None: DataFusion's.
            as_of: Only slices with rows that were known by then are brought.
            progress: Hears how far it is.

        Raises:
            InvalidQueryError: A quote does not end.
            UsageError: An address is none that a question takes, or there is too much.
            ProposalRejectedError, RejectedError: What is there is not accepted, or is not what its blocks say.
            UnavailableError, NotFoundError: It is not to be had.
        """
        engine = engine or QUERY_ENGINE
        names = find_remote_names(sql, engine)
        called: dict[str, str] = {}
        found: dict[str, tuple[str, QueryTable | None, str]] = {}
        for text in dict.fromkeys(each.text for each in names):
            address = text.removesuffix(STATE_SUFFIX)
            url = self.node.remotes.resolve(address)
            if not url.startswith(_SCHEMES):
                raise UsageError(
                    f"a query reads http:// and https:// addresses only; 'odf-node pull {address}' brings it"
                )
            if url not in found:
                found[url] = await self._find(url, self._free_name(len(found) + 1, sql), as_of, progress)
                require_undefined(found[url][0], sql, engine)
            called[text] = quote_name(found[url][0] + text[len(address) :])
        for each in reversed(names):
            sql = sql[: each.start] + called[each.text] + sql[each.end :]
        tables = tuple(table for _, table, _ in found.values() if table is not None)
        return RemoteQuery(sql, tables, tuple(note for _, _, note in found.values()))

    def close(self) -> None:
        """Forget what was brought."""
        self._stack.close()
        self._asked.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _find(
        self, url: str, free_name: str, as_of: Timestamp | None, progress: ProgressLine
    ) -> tuple[str, QueryTable | None, str]:
        """Give a dataset's name in the question, its table where it is not one of this node's, and what to say."""
        record = self._find_held(url) or await self._take(url, progress)
        if (held := self.node.store.find_dataset(record.id)) is not None:
            # What is known here of its keys and history outranks what is shown to a newcomer.
            note = (
                f"{url} is '{held.name}' in this node, which answers as of block {held.head.sequence_number}; "
                f"'odf-node pull {held.name}' brings what is new"
            )
            return held.name, None, note
        note = await self._bring_slices(record, url, as_of, progress)
        table = await finish_in_thread(partial(self._asked[url].queries.make_table, record, as_of, free_name))
        return free_name, table, note

    def _find_held(self, url: str) -> DatasetRecord | None:
        return next((each for each in self.node.store.list_datasets() if each.origin_url == url), None)

    def _free_name(self, number: int, sql: str) -> str:
        name, taken = (
            f"remote_{number}",
            {sql.lower(), *(each.name.lower() for each in self.node.store.list_datasets())},
        )
        while any(name in each for each in taken):
            name += "_"
        return name

    async def _take(self, url: str, progress: ProgressLine) -> DatasetRecord:
        """Take its blocks through the gate, under the policies of this node's operator (PART-1)."""
        if url not in self._asked:
            self._asked[url] = self._open()  # one for each, as two places may have two datasets of one name
        asked, pull_options = self._asked[url], PullOptions(subset=Subset.METADATA_ONLY, command="sql")
        try:
            return (await asked.pulling.pull(PullTarget(url, None, url), pull_options, progress)).record
        except ProposalRejectedError as rejection:
            # Its evidence ends with the question; a pull would keep it.
            report = {**{key: found for key, found in rejection.report.items() if key != "id"}, "dataset": url}
            raise ProposalRejectedError(
                rejection.rule, rejection.reason, sequence_number=rejection.sequence_number, report=report
            ) from rejection

    async def _bring_slices(
        self, record: DatasetRecord, url: str, as_of: Timestamp | None, progress: ProgressLine
    ) -> str:
        node = self._asked[url]
        sizes = {each.physical_hash: each.size for each in iter_slices(node.store, record.id, as_of=as_of)}
        if (total := sum(sizes.values())) > self.max_bytes:
            raise UsageError(
                f"{url} has {total:,} bytes of slices, more than the {self.max_bytes:,} that a query fetches; "
                f"'odf-node pull {url}' brings and keeps them"
            )
        absent = node.store.list_absent_objects(record.id) & sizes.keys()
        brought = sum(sizes[each] for each in absent)
        await node.bringing.bring(record, sizes, progress)
        is_signed = node.store.find_signed_head(record.id) is not None
        checked = "its chain, signatures and rows hold" if is_signed else "its chain and rows hold, no one signed it"
        if record.kind is DatasetKind.DERIVATIVE:
            checked += ", its steps were not computed again"
        return (
            f"{url}: brought {count_of(len(absent), 'file')} ({count_of(brought, 'byte')}) for this question alone; "
            f"{checked}; 'odf-node pull {url}' checks all and keeps it"
        )

    def _open(self) -> Node:
        # Where engines work: what a killed command leaves there is swept (HOME-18).
        folder = TemporaryDirectory(dir=self.node.engines.workspace, prefix="asked-")
        home = HomeFolder(Path(self._stack.enter_context(folder)))
        home.create()
        self.node.read_policies()  # where they cannot be read, none are not those of the operator
        if self.node.home.folder.policies.exists():
            shutil.copyfile(self.node.home.folder.policies, home.policies)
        asked = Node(home, self.node.clock)
        self._stack.callback(asked.close)
        # As this node, which is known to some and has tokens for some.
        asked.outgoing = self.node.outgoing
        return asked
