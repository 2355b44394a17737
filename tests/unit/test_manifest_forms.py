"""Every form that a source of a manifest may have is taken, or rejected with what is not built (ING-18)."""

from typing import Any, get_args

import pytest

from odf_node.ports.sources import Commands
from odf_protocol.events import FetchStep, MergeStrategy, PrepStep, ReadStep
from odf_protocol.manifest import ManifestError
from unit.test_manifest_check import check

COLUMNS = "ddlSchema: [event_time TIMESTAMP, op INT, city STRING, people BIGINT]"
CITY = "primaryKey: [city]"
FORMS: list[tuple[str, str, str, str | None]] = [
    ("fetch", "FetchStepUrl", "{kind: Url, url: 'https://example.org/a.csv'}", None),
    ("fetch", "FetchStepFilesGlob", "{kind: FilesGlob, path: /data/*.csv}", None),
    ("fetch", "FetchStepContainer", "{kind: Container, image: a/b:1}", "fetch.image: expected an image of this node"),
    ("fetch", "FetchStepMqtt", "{kind: Mqtt, host: h, port: 1883, topics: [{path: a}]}", None),
    (
        "fetch",
        "FetchStepEthereumLogs",
        "{kind: EthereumLogs, chainId: 1, signature: 'event A()'}",
        "fetch.kind: expected",
    ),
    ("prepare", "PrepStepDecompress", "[{kind: Decompress, format: Zip, subPath: a.csv}]", None),
    ("prepare", "PrepStepPipe", "[{kind: Pipe, command: [sort]}]", None),
    ("read", "ReadStepCsv", f"{{kind: Csv, header: true, {COLUMNS}}}", None),
    ("read", "ReadStepJson", f"{{kind: Json, subPath: a.b, {COLUMNS}}}", None),
    ("read", "ReadStepNdJson", f"{{kind: NdJson, {COLUMNS}}}", None),
    ("read", "ReadStepGeoJson", f"{{kind: GeoJson, {COLUMNS}}}", None),
    ("read", "ReadStepNdGeoJson", f"{{kind: NdGeoJson, {COLUMNS}}}", None),
    ("read", "ReadStepEsriShapefile", f"{{kind: EsriShapefile, subPath: 'a/*.shp', {COLUMNS}}}", None),
    ("read", "ReadStepParquet", f"{{kind: Parquet, {COLUMNS}}}", None),
    ("merge", "MergeStrategyAppend", "{kind: Append}", None),
    ("merge", "MergeStrategyLedger", f"{{kind: Ledger, {CITY}}}", None),
    ("merge", "MergeStrategySnapshot", f"{{kind: Snapshot, {CITY}, compareColumns: [people]}}", None),
    ("merge", "MergeStrategyChangelogStream", f"{{kind: ChangelogStream, {CITY}}}", None),
    ("merge", "MergeStrategyUpsertStream", f"{{kind: UpsertStream, {CITY}}}", None),
]


@pytest.mark.parametrize(("part", "form", "text", "rejection"), FORMS, ids=[form for _, form, *_ in FORMS])
def test_form_is_taken_or_rejected_with_what_is_not_built(
    part: str, form: str, text: str, rejection: str | None
) -> None:
    with_operations = form in {"MergeStrategyChangelogStream", "MergeStrategyUpsertStream"}
    columns = COLUMNS if with_operations else COLUMNS.replace("op INT, ", "")
    parts = {"read": f"{{kind: Csv, header: true, {columns}}}", part: text.replace("op INT, ", "")}
    if rejection is None:
        check(Commands.SANDBOXED, **parts)
    else:
        with pytest.raises(ManifestError) as caught:
            check(Commands.SANDBOXED, **parts)
        assert rejection in str(caught.value)


def members(union: Any) -> set[str]:
    return {union.__name__} if isinstance(union, type) else {name for each in get_args(union) for name in members(each)}


def test_all_forms_are_here() -> None:
    known = {name for union in (FetchStep, PrepStep, ReadStep, MergeStrategy) for name in members(union)}
    assert {form for _, form, *_ in FORMS} == known
