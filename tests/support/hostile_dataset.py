"""A dataset of somebody whose every word would run, load or lead astray in a browser."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeOption,
    DataTypeString,
    MergeStrategyLedger,
    ReadStepNdJson,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
)
from odf_protocol.events.metadata import AttachmentEmbedded, AttachmentsEmbedded
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.offers import NOON, PeerChain, parquet_bytes
from support.signing import OTHER_KEY

SCRIPT = "<script>alert(1)</script>"
BROKEN_OUT = "\"'--></td></table></title></textarea><svg onload=alert(1)><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}"
TURNED = "invoice\u202efdp.exe\u2066\x1b[2J\x00\x7f\u200b\ufeff"
WORDS = (
    SCRIPT,
    BROKEN_OUT,
    TURNED,
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example",
)
MEGABYTE = 1024 * 1024


def field(name: str) -> DataField:
    return DataField(name=name, type=DataTypeOption(inner=DataTypeString()))


def hostile_chain(folder: Path, columns: tuple[str, ...], cells: list[Any]) -> PeerChain:
    """A root whose metadata and rows are these; a list of cells a column."""
    schema = DataSchema(fields=(*system_fields(Vocabulary()), *map(field, columns)))
    chain = PeerChain(folder, key=OTHER_KEY, name="hostile.data")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT))
    chain.add(SetInfo(description=" ".join(WORDS), keywords=WORDS))
    chain.add(SetLicense(short_name=SCRIPT, name=BROKEN_OUT, spdx_id=SCRIPT, website_url="javascript:alert(1)"))
    items = tuple(AttachmentEmbedded(path=word, content=word) for word in WORDS)
    chain.add(SetAttachments(attachments=AttachmentsEmbedded(items=items)))
    merge = MergeStrategyLedger(primary_key=(columns[0],))
    chain.add(AddPushSource(source_name=SCRIPT, read=ReadStepNdJson(), merge=merge))
    chain.add(SetDataSchema(schema=schema))
    count, at = len(cells[0]), Timestamp(NOON.seconds + len(chain.blocks))
    system = {
        "offset": [*range(count)],
        "op": [0] * count,
        "system_time": [at.unix_ms] * count,
        "event_time": [0] * count,
    }
    arrow = arrow_schema_of(schema)
    if isinstance(cells[0], pa.DictionaryArray):
        arrow = arrow.set(len(system), pa.field(columns[0], cells[0].type))
    arrays = [pa.array(values, pa.int64()).cast(arrow.field(name).type) for name, values in system.items()]
    texts = [column if isinstance(column, pa.Array) else pa.array(column, pa.string()) for column in cells]
    content = parquet_bytes(
        pa.Table.from_arrays([*arrays, *texts], schema=arrow),
        dictionary_pagesize_limit=16 * MEGABYTE,
        store_schema=False,
    )
    # What the rows hash to is nothing that pages look at.
    return chain.add_slice(content, rows=count, logical_hash=Multihash(ARROW0_SHA3_256, bytes(32)))


def hostile_words() -> tuple[tuple[str, ...], list[Any]]:
    """Columns and cells that are such words."""
    columns = (SCRIPT, BROKEN_OUT, TURNED.replace("\x00", ""), "javascript:alert(1)")
    return columns, [[*WORDS] for _ in columns]
