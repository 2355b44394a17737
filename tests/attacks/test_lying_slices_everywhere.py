"""Changed files before every reader of the product: rejected, or all of them see the same rows.

``ODF_LYING_SLICES=20000`` makes as many mutants instead of a few, ``ODF_LYING_SLICES_SPARK`` says how many of those
that were taken are shown to Spark, and ``ODF_LYING_SLICES_SEED`` makes others; each names its seed and number.

Source: ROWS-9 and ROWS-10 in ``spec/extensions/acceptance.md``; ENGINE-26 in ``spec/extensions/engine-contract.md``.
"""

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import TransformInput
from odf_protocol.events import OffsetInterval
from odf_protocol.vocabulary import Vocabulary
from support.lying_parquet import iter_mutants
from support.lying_readers import ROWS, SCHEMA, honest_files, judge, judge_mutants
from support.transforms import transform_request

COUNT = int(os.environ.get("ODF_LYING_SLICES", "150"))
SHOWN_TO_SPARK = int(os.environ.get("ODF_LYING_SLICES_SPARK", "6"))
SEED = int(os.environ.get("ODF_LYING_SLICES_SEED", "1"))
COLUMNS = ("event_time", "city", "people", "small", "share", "price", "wide", "day", "seen", "raw", "is_new", "tags")


def test_changed_slice_is_rejected_or_every_reader_sees_the_same_rows() -> None:
    found = judge_mutants(SEED, COUNT)

    print(found.counts)
    assert found.failures == []
    assert found.counts.total() == COUNT
    assert found.counts["the honest rows"] > COUNT // 4
    assert found.counts["other rows"] > 0  # claimed as they are by a publisher who made them: everybody sees them


@pytest.mark.spark
def test_step_over_a_changed_slice_gives_the_rows_that_were_verified(spark_session: Any, tmp_path: Path) -> None:
    shown = 0
    for mutant in iter_mutants(honest_files(), SEED + 1, 100 + 10 * SHOWN_TO_SPARK):
        if shown == SHOWN_TO_SPARK or judge(mutant, tmp_path).startswith("rejected"):
            continue
        made = tmp_path / "made.parquet"
        source = TransformInput(
            dataset_id="", alias="rows", vocabulary=Vocabulary(), schema=SCHEMA, slices=(made,),
            offset_interval=OffsetInterval(start=0, end=ROWS - 1),
        )  # fmt: skip
        answer = spark_session.transform(transform_request(f"SELECT {', '.join(COLUMNS)} FROM `rows`", source))
        derived = pq.read_table(answer.data_path).select(COLUMNS)
        verified = pq.read_table(made).select(COLUMNS)
        assert repr(derived.to_pylist()) == repr(verified.to_pylist()), mutant.what  # NaN equals itself, -0.0 not 0.0
        shown += 1
    assert shown == SHOWN_TO_SPARK
