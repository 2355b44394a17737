"""What an ingest did, by stage and plug-in, as people and programs read it.

Source: clause STAGE-4 in ``spec/observing.md``.
"""

from collections.abc import Sequence
from typing import Any

from odf_engines.stage_metrics import IngestStage, StageMetrics


def describe_ingest(stages: Sequence[StageMetrics]) -> str:
    """Say shortly what an ingest did: ``read 120, 3 bad, 1.2 s: read 0.7 s``; empty: nobody measured."""
    wholes = [each for each in stages if not each.plug_in]
    if not wholes:
        return ""
    records = next((each.rows_in for each in wholes if each.stage == IngestStage.READ), None)
    bad = next((each.rows_out for each in wholes if each.stage == IngestStage.QUARANTINE), None)
    parts = [] if records is None else [f"read {records:,}"]
    parts += [f"{bad:,} bad"] if bad else []
    parts.append(f"{sum(each.seconds for each in wholes):.1f} s")
    longest = sorted((each for each in wholes if each.seconds >= 0.05), key=lambda each: -each.seconds)[:3]
    of_what = ", ".join(f"{each.stage} {each.seconds:.1f} s" for each in longest)
    return ", ".join(parts) + (f": {of_what}" if of_what else "")


def stages_to_json(stages: Sequence[StageMetrics]) -> list[dict[str, Any]]:
    """Give figures as plain values; of a stage as a whole there is no ``plugIn``."""
    return [
        {
            "stage": each.stage,
            **({"plugIn": each.plug_in} if each.plug_in else {}),
            "seconds": round(each.seconds, 6),
            "rowsIn": each.rows_in,
            "rowsOut": each.rows_out,
            "badRows": each.bad_rows,
        }
        for each in stages
    ]
