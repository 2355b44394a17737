"""What ingests leave beside the chain: merge states, answers, figures by stage and plug-in."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from odf_engines.stage_metrics import StageMetrics, merge_stages
from odf_node.records.ingests import (
    KEPT_INGESTS,
    MAX_KEPT_KEYS,
    MAX_PLUG_INS,
    OTHER_PLUG_INS,
    IngestKey,
    KeptAnswer,
    KeyInUseError,
    StageTotal,
)
from odf_node.records.quarantine import QuarantineFile, SettledRows
from odf_node.store.database import StoreTables
from odf_node.store.quarantine import (
    QUARANTINE_COLUMNS,
    insert_quarantine,
    insert_settlement,
    read_quarantine,
)
from odf_node.store.rows import as_bytes, as_int, get_dataset_key
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

_MERGE_STATE: Final = "SELECT m.object_hash FROM merge_states m JOIN datasets d ON d.key = m.dataset WHERE d.id = ?"


class IngestTables(StoreTables):
    """Rows set aside, and the projected state that the next ingest goes on from."""

    def put_quarantine(self, quarantine: QuarantineFile) -> None:
        """Keep a quarantine file of an ingest that made no block; its object is durable already."""
        with self._database.writing() as connection:
            insert_quarantine(connection, get_dataset_key(connection, quarantine.dataset_id), quarantine)

    def iter_quarantine(self, dataset_id: DatasetId) -> Iterator[QuarantineFile]:
        """Yield the dataset's quarantine files, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {QUARANTINE_COLUMNS} FROM quarantine_files WHERE dataset = ? ORDER BY id",  # noqa: S608 - a constant
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return (read_quarantine(dataset_id, row) for row in rows)

    def list_datasets_with_quarantine(self) -> frozenset[DatasetId]:
        """Return the datasets for which ``iter_quarantine`` yields something."""
        statement = "SELECT id FROM datasets WHERE key IN (SELECT dataset FROM quarantine_files)"
        return frozenset(self._list(lambda row: DatasetId.decode(row[0]), statement))

    def find_answer(self, dataset_id: DatasetId, caller: str, key: str) -> KeptAnswer | None:
        """Return what was answered under a caller's key; None: nothing yet, or ``MAX_KEPT_KEYS`` keys ago."""

        def read(row: tuple[Any, ...]) -> KeptAnswer:
            asked = IngestKey(caller=caller, text=key, asked=row[0])
            return KeptAnswer(key=asked, sequence_number=row[1], text=row[2])

        return self._find(
            read,
            "SELECT i.asked, i.sequence_number, i.answer FROM ingest_keys i JOIN datasets d ON d.key = i.dataset"
            " WHERE d.id = ? AND i.caller = ? AND i.key = ?",
            dataset_id.to_bytes(),
            caller,
            key,
        )

    def put_answer(
        self,
        dataset_id: DatasetId,
        answer: KeptAnswer,
        quarantine: QuarantineFile | None = None,
        settlement: SettledRows | None = None,
    ) -> None:
        """Keep the answer of an ingest that made no block, with what it set aside and settled, all or nothing.

        Raises:
            KeyInUseError: Somebody else kept an answer under the key.
            SettledError: What it settles does not wait any more.
        """
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            insert_answer(connection, key, answer)
            if settlement is not None:
                insert_settlement(connection, key, settlement, None)
            if quarantine is not None:
                insert_quarantine(connection, key, quarantine)

    def find_batch_size(self, dataset_id: DatasetId, push_source: str | None) -> int | None:
        """Return how many rows the batch had that was taken last from a source; None for the polled one."""
        return self._find(
            lambda row: as_int(row[0]),
            "SELECT b.row_count FROM batch_sizes b JOIN datasets d ON d.key = b.dataset"
            " WHERE d.id = ? AND b.push_source = ?",
            dataset_id.to_bytes(),
            push_source or "",
        )

    def put_batch_size(self, dataset_id: DatasetId, push_source: str | None, row_count: int) -> None:
        """Note how many rows a batch had that was taken; what limits compare the next one with."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO batch_sizes (dataset, push_source, row_count) VALUES (?, ?, ?)",
                (get_dataset_key(connection, dataset_id), push_source or "", row_count),
            )

    def find_fetched_place(self, dataset_id: DatasetId, state: str) -> bytes | None:
        """Return the digest of the place that the newest noted source state came from; None: it is another state."""
        return self._find(
            lambda row: as_bytes(row[0]),
            "SELECT f.place FROM fetched_places f JOIN datasets d ON d.key = f.dataset WHERE d.id = ? AND f.state = ?",
            dataset_id.to_bytes(),
            state,
        )

    def find_merge_state(self, dataset_id: DatasetId, block_hash: Multihash) -> Multihash | None:
        """Return the object with the projected state after a block, or None: then it is computed again."""
        statement = f"{_MERGE_STATE} AND m.block_hash = ?"
        return self._find(lambda row: Multihash.decode(row[0]), statement, dataset_id.to_bytes(), block_hash.to_bytes())

    def find_newest_merge_state(self, dataset_id: DatasetId) -> Multihash | None:
        """Return the object with the one projected state that is kept for the dataset, after whichever block."""
        return self._find(lambda row: Multihash.decode(row[0]), _MERGE_STATE, dataset_id.to_bytes())


def insert_answer(connection: sqlite3.Connection, key: int, answer: KeptAnswer) -> None:
    """Keep what was answered under a key inside a transaction, and forget the oldest keys of the caller.

    Raises:
        KeyInUseError: There is an answer under it; the transaction is to be given up.
    """
    asked = answer.key
    done = connection.execute(
        "INSERT INTO ingest_keys (dataset, caller, key, asked, sequence_number, answer) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (dataset, caller, key) DO NOTHING",
        (key, asked.caller, asked.text, asked.asked, answer.sequence_number, answer.text),
    )
    if done.rowcount != 1:
        raise KeyInUseError(asked.text)
    connection.execute(
        "DELETE FROM ingest_keys WHERE dataset = ? AND caller = ? AND id <= (SELECT id FROM ingest_keys"
        " WHERE dataset = ? AND caller = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (key, asked.caller, key, asked.caller, MAX_KEPT_KEYS),
    )


def replace_merge_state(
    connection: sqlite3.Connection, key: int, block_hash: Multihash, object_hash: Multihash
) -> None:
    """Keep one merge state per dataset: the newest."""
    connection.execute(
        "INSERT OR REPLACE INTO merge_states (dataset, block_hash, object_hash) VALUES (?, ?, ?)",
        (key, block_hash.to_bytes(), object_hash.to_bytes()),
    )


_FIGURES = ("stage", "plug_in", "position", "seconds", "rows_in", "rows_out", "bad_rows")


class StageTables(StoreTables):
    """Figures of ingests by stage and plug-in."""

    def note_stages(
        self,
        dataset_id: DatasetId,
        sequence_number: int | None,
        stages: Sequence[StageMetrics],
        row_counts: Mapping[str, Any] | None = None,
    ) -> None:
        """Add figures of a batch to the sums, and keep them beside its block, None where it made none.

        ``row_counts`` says what became of its rows, as plain values (ING-46).
        """
        with self._database.writing() as connection:
            for each in merge_stages(stages, by_position=False):
                _add(connection, each)
            if sequence_number is None:
                return
            key = get_dataset_key(connection, dataset_id)
            figures = [[getattr(each, name) for name in _FIGURES] for each in stages]
            plain = json.dumps({"stages": figures, "rows": row_counts})
            connection.execute(
                "INSERT OR REPLACE INTO ingest_stages (dataset, sequence_number, figures) VALUES (?, ?, ?)",
                (key, sequence_number, plain),
            )
            connection.execute(
                "DELETE FROM ingest_stages WHERE dataset = ? AND sequence_number <= ("
                "SELECT sequence_number FROM ingest_stages WHERE dataset = ?"
                " ORDER BY sequence_number DESC LIMIT 1 OFFSET ?)",
                (key, key, KEPT_INGESTS),
            )

    def find_stages(self, dataset_id: DatasetId, sequence_number: int) -> tuple[StageMetrics, ...]:
        """Return the figures of the ingest that made a block; empty where they are not kept."""
        kept = self._find_figures(dataset_id, sequence_number)
        return tuple(StageMetrics(**dict(zip(_FIGURES, each, strict=True))) for each in kept["stages"])

    def find_row_counts(self, dataset_id: DatasetId, sequence_number: int) -> dict[str, Any] | None:
        """Return what became of the rows of the ingest that made a block; None where that is not kept."""
        return cast("dict[str, Any] | None", self._find_figures(dataset_id, sequence_number)["rows"])

    def list_newest_row_counts(self) -> list[tuple[str, dict[str, Any]]]:
        """Return, by name of the dataset, what became of the rows of the newest ingest that made a block."""
        statement = (
            "SELECT d.name, s.figures FROM ingest_stages s JOIN datasets d ON d.key = s.dataset WHERE s.sequence_number"
            " = (SELECT max(sequence_number) FROM ingest_stages WHERE dataset = d.key) ORDER BY d.name"
        )
        found = self._list(lambda row: (row[0], _read_figures(row)["rows"]), statement)
        return [(name, counts) for name, counts in found if counts is not None]

    def _find_figures(self, dataset_id: DatasetId, sequence_number: int) -> dict[str, Any]:
        kept = self._find(
            _read_figures,
            "SELECT s.figures FROM ingest_stages s JOIN datasets d ON d.key = s.dataset"
            " WHERE d.id = ? AND s.sequence_number = ?",
            dataset_id.to_bytes(),
            sequence_number,
        )
        return {"stages": [], "rows": None} if kept is None else kept

    def list_stage_totals(self) -> list[StageTotal]:
        """Return the sums, by stage and plug-in."""
        names = ("stage", "plug_in", "batches", "seconds", "rows_in", "rows_out", "bad_rows")
        statement = f"SELECT {', '.join(names)} FROM stage_totals ORDER BY stage, plug_in"  # noqa: S608 - constants
        return [*self._list(lambda row: StageTotal(**dict(zip(names, row, strict=True))), statement)]


def _read_figures(row: Sequence[Any]) -> dict[str, Any]:
    """Read the figures of an ingest; homes of before have those of stages alone."""
    kept = json.loads(row[-1])
    return {"stages": kept, "rows": None} if isinstance(kept, list) else kept


def _add(connection: sqlite3.Connection, figures: StageMetrics) -> None:
    """Add to the sum of a stage or plug-in; where there are too many of them, to that of all others of the stage."""
    plug_in = figures.plug_in
    known = "SELECT 1 FROM stage_totals WHERE stage = ? AND plug_in = ?"
    if plug_in and connection.execute(known, (figures.stage, plug_in)).fetchone() is None:
        (count,) = connection.execute("SELECT count(*) FROM stage_totals WHERE plug_in <> ''").fetchone()
        plug_in = plug_in if count < MAX_PLUG_INS else OTHER_PLUG_INS
    connection.execute(
        "INSERT INTO stage_totals (stage, plug_in, batches, seconds, rows_in, rows_out, bad_rows)"
        " VALUES (?, ?, 1, ?, ?, ?, ?) ON CONFLICT (stage, plug_in) DO UPDATE SET batches = batches + 1,"
        " seconds = seconds + excluded.seconds, rows_in = rows_in + excluded.rows_in,"
        " rows_out = rows_out + excluded.rows_out, bad_rows = bad_rows + excluded.bad_rows",
        (
            figures.stage,
            plug_in,
            figures.seconds,
            figures.rows_in or 0,
            figures.rows_out or 0,
            figures.bad_rows or 0,
        ),
    )
