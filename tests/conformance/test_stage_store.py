"""Metrics of stages in the store of a home (STAGE-4, STAGE-5, STAGE-6)."""

from odf_engines.stage_metrics import StageMetrics
from odf_node.records.ingests import KEPT_INGESTS, MAX_PLUG_INS, OTHER_PLUG_INS
from odf_node.row_counts import RowCounts
from odf_node.store import MetadataStore
from support.store_values import creation, dataset_id, growth

READ = StageMetrics(stage="read", seconds=0.5, rows_in=10, rows_out=9, bad_rows=1)
CSV = StageMetrics(stage="read", plug_in="Csv", seconds=0.25, rows_in=10)


def test_figures_of_a_block_are_kept(store: MetadataStore) -> None:
    store.commit(creation())
    assert store.find_stages(dataset_id(), 0) == ()
    store.note_stages(dataset_id(), 0, [READ, CSV])
    assert store.find_stages(dataset_id(), 0) == (READ, CSV)
    assert store.find_stages(dataset_id(), 1) == ()


def test_what_became_of_rows_is_kept_beside_a_block_stage_6(store: MetadataStore) -> None:
    store.commit(creation())
    counts = RowCounts(added=3, corrected=1, quarantined=2, ignored={"unit": 3}, unread=("b.csv",)).to_json()
    store.note_stages(dataset_id(), 0, [READ], counts)
    store.note_stages(dataset_id(), None, [READ], RowCounts(added=99).to_json())
    assert store.find_stages(dataset_id(), 0) == (READ,)
    assert store.find_row_counts(dataset_id(), 0) == counts
    assert store.find_row_counts(dataset_id(), 1) is None
    ((_, newest),) = store.list_newest_row_counts()
    assert RowCounts.of_json(newest).to_json() == counts


def test_figures_of_a_home_of_before_are_those_of_stages_alone(store: MetadataStore) -> None:
    store.commit(creation())
    store.note_stages(dataset_id(), 0, [READ])
    with store._database.writing() as connection:
        connection.execute("""UPDATE ingest_stages SET figures = '[["read", "", 0, 0.5, 10, 9, 1]]'""")
    assert [each.rows_in for each in store.find_stages(dataset_id(), 0)] == [10]
    assert store.find_row_counts(dataset_id(), 0) is None
    assert store.list_newest_row_counts() == []


def test_figures_are_summed_over_batches_with_and_without_a_block(store: MetadataStore) -> None:
    store.commit(creation())
    store.note_stages(dataset_id(), 0, [READ, CSV])
    store.note_stages(dataset_id(), None, [READ, CSV, CSV])
    whole, plug_in = store.list_stage_totals()
    assert (whole.stage, whole.plug_in, whole.batches, whole.seconds) == ("read", "", 2, 1.0)
    assert (whole.rows_in, whole.rows_out, whole.bad_rows) == (20, 18, 2)
    assert (plug_in.plug_in, plug_in.batches, plug_in.seconds, plug_in.rows_in) == ("Csv", 2, 0.75, 30)


def test_plug_ins_beyond_the_bound_are_summed_together(store: MetadataStore) -> None:
    store.commit(creation())
    names = [f"plug-in {number}" for number in range(MAX_PLUG_INS + 3)]
    store.note_stages(dataset_id(), None, [StageMetrics(stage="validate", plug_in=name, seconds=1) for name in names])
    totals = store.list_stage_totals()
    assert len(totals) == MAX_PLUG_INS + 1
    (others,) = [each for each in totals if each.plug_in == OTHER_PLUG_INS]
    assert (others.batches, others.seconds) == (3, 3.0)


def test_only_the_newest_blocks_keep_their_figures(store: MetadataStore) -> None:
    commit = creation()
    store.commit(commit)
    for number in range(KEPT_INGESTS + 2):
        if number:
            commit = growth(commit)
            store.commit(commit)
        store.note_stages(dataset_id(), number, [READ])
    kept = [number for number in range(KEPT_INGESTS + 2) if store.find_stages(dataset_id(), number)]
    assert kept == list(range(2, KEPT_INGESTS + 2))
