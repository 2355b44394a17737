"""Figures of ingests by stage and plug-in."""

import json
import sqlite3
from collections.abc import Sequence

from odf_engines.stage_figures import StageFigures, merge_stages
from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import get_dataset_key
from odf_node.ports.ingests import KEPT_INGESTS, MAX_PLUG_INS, OTHER_PLUG_INS, StageTotal
from odf_protocol.did import DatasetId

_FIGURES = ("stage", "plug_in", "position", "seconds", "rows_in", "rows_out", "bad_rows")


class SqliteStages(SqlitePort):
    """``StageStore`` on SQLite."""

    def note_stages(self, dataset_id: DatasetId, sequence_number: int | None, stages: Sequence[StageFigures]) -> None:
        with self._database.writing() as connection:
            for each in merge_stages(stages, by_position=False):
                _add(connection, each)
            if sequence_number is None:
                return
            key = get_dataset_key(connection, dataset_id)
            plain = json.dumps([[getattr(each, name) for name in _FIGURES] for each in stages])
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

    def find_stages(self, dataset_id: DatasetId, sequence_number: int) -> tuple[StageFigures, ...]:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT s.figures FROM ingest_stages s JOIN datasets d ON d.key = s.dataset"
                " WHERE d.id = ? AND s.sequence_number = ?",
                (dataset_id.to_bytes(), sequence_number),
            ).fetchone()
        kept = [] if row is None else json.loads(row[0])
        return tuple(StageFigures(**dict(zip(_FIGURES, each, strict=True))) for each in kept)

    def list_stage_totals(self) -> list[StageTotal]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT stage, plug_in, batches, seconds, rows_in, rows_out, bad_rows FROM stage_totals"
                " ORDER BY stage, plug_in"
            ).fetchall()
        names = ("stage", "plug_in", "batches", "seconds", "rows_in", "rows_out", "bad_rows")
        return [StageTotal(**dict(zip(names, row, strict=True))) for row in rows]


def _add(connection: sqlite3.Connection, figures: StageFigures) -> None:
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
