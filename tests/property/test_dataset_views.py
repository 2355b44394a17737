"""What is in force, read from few blocks, is what the whole chain says."""

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from odf_node.datasets.chains import iter_slices, load_view
from odf_node.home_folder import HomeFolder
from odf_node.records.commits import Commit, NewBlock, NewDataset
from odf_node.records.datasets import Origin
from odf_node.store import MetadataStore
from odf_protocol.block_traits import traits_of
from odf_protocol.dataset_view import DatasetView, ViewFold, apply, start_view
from odf_protocol.events import (
    AddData,
    DisablePollingSource,
    DisablePushSource,
    Event,
    ExecuteTransform,
    SetAttachments,
    SetInfo,
    SetLicense,
    SetVocab,
    SourceState,
)
from odf_protocol.events.metadata import AttachmentsEmbedded
from support.chains import (
    DATASET,
    INPUT_A,
    NOON,
    ChainBuilder,
    checkpoint,
    later,
    optional,
    polling_source,
    push_source,
    rows,
    schema,
    sql,
    transform,
)

TEXTS = st.sampled_from(["a", "b", "c"])
DEFINITIONS: st.SearchStrategy[Event] = st.one_of(
    st.builds(SetInfo, description=TEXTS),
    st.builds(SetLicense, short_name=TEXTS, name=TEXTS, website_url=TEXTS),
    st.builds(SetVocab, offset_column=TEXTS),
    st.builds(lambda name: schema(optional(name)), TEXTS),
    st.builds(push_source, TEXTS),
    st.builds(DisablePushSource, source_name=TEXTS),
    st.just(polling_source()),
    st.just(DisablePollingSource()),
    st.just(SetAttachments(attachments=AttachmentsEmbedded(items=()))),
    st.builds(lambda text: transform(INPUT_A, transform=sql(text)), TEXTS),
)


@st.composite
def chains(draw: st.DrawFn) -> ChainBuilder:
    """Definitions and data in any order; the offsets of data go on, as chain rules ask."""
    is_root = draw(st.booleans())
    chain = ChainBuilder.root() if is_root else ChainBuilder.derivative()
    last: int | None = None
    for _ in range(draw(st.integers(0, 25))):
        if draw(st.booleans()):
            chain.add(draw(DEFINITIONS))
            continue
        first = 0 if last is None else last + 1
        data = rows(first, first + draw(st.integers(0, 9))) if draw(st.booleans()) else None
        watermark = later(len(chain.blocks)) if draw(st.booleans()) else None
        saved = checkpoint(str(first)) if draw(st.booleans()) else None
        if is_root:
            state = SourceState(source_name="s", kind="k", value=str(first)) if draw(st.booleans()) else None
            chain.add(
                AddData(
                    prev_offset=last,
                    new_data=data,
                    new_watermark=watermark,
                    new_checkpoint=saved,
                    new_source_state=state,
                )
            )
        else:
            chain.add(
                ExecuteTransform(
                    query_inputs=(),
                    prev_offset=last,
                    new_data=data,
                    new_watermark=watermark,
                    new_checkpoint=saved,
                )
            )
        last = data.offset_interval.end if data else last
    return chain


def _folded(chain: ChainBuilder) -> list[DatasetView]:
    views = [start_view(chain.blocks[0])]
    for block in chain.blocks[1:]:
        views.append(apply(views[-1], block))
    return views


@given(chains())
def test_view_of_few_blocks_is_the_view_of_the_whole_chain_at_every_block(chain: ChainBuilder) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(MetadataStore(HomeFolder(Path(folder)))) as store:
        kind = chain.blocks[0].event.dataset_kind  # type: ignore[union-attr]
        store.commit(
            Commit(
                dataset_id=DATASET,
                expected_head=None,
                blocks=tuple(NewBlock.of(block) for block in chain.blocks),
                chain_state=b"",
                new_dataset=NewDataset(name="a", kind=kind, origin=Origin.OWN, created_at=NOON),
            )
        )
        for number, view in enumerate(_folded(chain)):
            assert load_view(store, DATASET, upto=number) == view
        assert load_view(store, DATASET) == view
        added = [getattr(block.event, "new_data", None) for block in chain.blocks]
        assert list(iter_slices(store, DATASET)) == [item for item in added if item is not None]


@given(chains(), st.sets(st.integers(0, 30)))
def test_fold_that_is_asked_now_and_then_gives_the_view_of_every_block(chain: ChainBuilder, asked: set[int]) -> None:
    fold = ViewFold(None)
    for number, (block, view) in enumerate(zip(chain.blocks, _folded(chain), strict=True)):
        fold.take(block.raw, traits_of(block.event))
        if number in asked:
            assert fold.view == view
    assert fold.view == view
