"""Merge strategies: how new rows meet the rows that are already there.

A strategy turns *staged* rows (`ord`, `v0`, …) and the projected *state* (`v0`, … of every key's last row) into

- *changes*: rows with `op` and the values, in the order of their offsets,
- *refused* rows: those that would make the result ambiguous, with the reason,
- the new *state*.

None of them reads history: the state is all they need, and it grows with the number of keys, not of rows ever written.

Source: ODF "Merge strategies"; spec/ingest.md ING-8 to ING-12.
"""

from odf_engines.ingest.outcome import MergeOutcome, Refusal
from odf_engines.spark.ingest.merge.strategies import keeps_state, merge_rows

__all__ = ["MergeOutcome", "Refusal", "keeps_state", "merge_rows"]
