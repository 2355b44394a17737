"""Rows behind the stages of a rehearsed ingest, a line each, for people and as plain values (ING-25)."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from odf_node.ingest.batch_limits import BatchRefusedError
from odf_node.ingest.stage_samples import Stage, StageSample

_SHOWN_CHARACTERS: Final = 400  # guess: of a row, a few lines of a terminal
_HEADINGS: Final = {
    Stage.READ: "as read",
    Stage.CONVERTED: "behind the converters",
    Stage.QUERIED: "behind the preprocess query",
    Stage.WRITTEN: "as they would be written",
    Stage.REFUSED: "that would be refused",
}


def iter_sample_lines(name: str, samples: Sequence[StageSample]) -> Iterator[str]:
    """Show samples, each row as JSON in a line; of a refused one its place, what is wrong, and what was sent."""
    for sample in samples:
        yield f"{name}: first rows {_HEADINGS[sample.stage]}:{'' if sample.rows else ' none'}"
        for row in sample.rows:
            text = _describe_refused(row) if sample.stage is Stage.REFUSED else json.dumps(row, ensure_ascii=False)
            yield f"  {text if len(text) <= _SHOWN_CHARACTERS else f'{text[:_SHOWN_CHARACTERS]}…'}"


def iter_refusal_lines(error: BaseException | None) -> Iterator[str]:
    """Show the samples of a rehearsed batch that would be refused as a whole; nothing of any other failure."""
    if isinstance(error, BatchRefusedError):
        yield from iter_sample_lines(error.dataset, error.samples)


def samples_to_json(samples: Sequence[StageSample]) -> list[dict[str, Any]]:
    """Give samples as plain values."""
    return [{"stage": each.stage.value, "rows": list(each.rows)} for each in samples]


def _describe_refused(row: dict[str, Any]) -> str:
    place = f"line {row['line']}: " if row["line"] is not None else ""
    errors = "; ".join(f"{each['column'] or 'row'}: {each['message']}" for each in row["errors"])
    return f"{place}{errors}; as sent: {row['original'] if row['original'] is not None else '(no UTF-8)'}"
