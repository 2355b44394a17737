"""Which read steps of texts take the same columns as a stream of Arrow's too: those that say what the columns are.

Source: clause ING-3 in ``spec/ingest.md``; clause FEED-6 in ``spec/pushed-rows.md``.
"""

from typing import Final

from odf_protocol.events import ReadStep, ReadStepCsv, ReadStepJson, ReadStepNdJson

_UTF_8: Final = ("utf8", "utf-8")


def may_be_columns(step: ReadStep) -> bool:
    """Say whether a step declares columns, and reads bytes as they come: what an encoding is undone of is a text."""
    if not isinstance(step, ReadStepCsv | ReadStepJson | ReadStepNdJson):
        return False
    is_declared = step.schema is not None or step.ddl_schema is not None
    return is_declared and (step.encoding or _UTF_8[0]).lower() in _UTF_8
