"""Messages and batches of the Smart Transfer Protocol against recordings and strangers (SMART-2, SMART-3, SMART-4)."""

import gzip
import json
import random
import tarfile
from io import BytesIO

import msgspec
import pytest

from odf_protocol.block import decode_block
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from odf_smart_protocol import batches, messages
from odf_smart_protocol.batches import decode_batch, encode_batch
from odf_smart_protocol.limits import MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES
from odf_smart_protocol.messages import (
    Answer,
    BlocksBatch,
    BlocksResponse,
    ObjectsPullRequest,
    ObjectsPullResponse,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PullResponse,
    PushBlocks,
    PushProgress,
    Running,
    SmartPullRequest,
    SmartPushRequest,
    decode_message,
    encode_message,
)
from odf_smart_protocol.problems import Empty
from support.kamu import read_chain
from support.smart_recordings import PULLS, PUSHES, read_recordings

PULL_ORDER = {
    "client": [SmartPullRequest, Empty, ObjectsPullRequest],
    "server": [PullResponse, BlocksResponse, ObjectsPullResponse],
}
PUSH_ORDER = {
    "client": [SmartPushRequest, PushBlocks, ObjectsPushRequest, PushProgress, Empty],
    "server": [Answer, Answer, ObjectsPushResponse, Empty],
}
FIRST = "smart pull, anonymous, clone"


def recorded_batch() -> BlocksBatch:
    return decode_message(read_recordings()[FIRST].texts("server")[1], BlocksResponse).blocks


@pytest.mark.parametrize("name", PULLS + PUSHES)
@pytest.mark.parametrize("side", ["client", "server"])
def test_recorded_message_is_read_and_written_to_the_byte(name: str, side: str) -> None:
    order = PULL_ORDER if name in PULLS else PUSH_ORDER
    texts = read_recordings()[name].texts(side)
    assert texts
    for text, kind in zip(texts, order[side], strict=False):
        assert encode_message(decode_message(text, kind)) == text


@pytest.mark.parametrize("name", PULLS + PUSHES)
def test_recorded_batch_holds_blocks_of_their_names_and_is_the_tar_that_we_write(name: str) -> None:
    texts = [text for _, text in read_recordings()[name].stated if b'"payload"' in text]
    for text in texts:
        kind = BlocksResponse if b'{"blocks"' in text else PushBlocks
        message = decode_message(text, kind)
        batch = message.blocks if isinstance(message, BlocksResponse) else message.new_blocks
        payload = batch.payload_bytes()
        blocks = list(decode_batch(payload, num_blocks=batch.num_blocks))
        for block_hash, raw in blocks:
            decode_block(raw, expected_hash=block_hash)
        ours, count = encode_batch(blocks)
        assert count == batch.num_blocks
        assert gzip.decompress(ours) == gzip.decompress(payload)
        assert encode_message(BlocksBatch.of(payload, count)) == encode_message(batch)


def test_batch_is_an_archive_that_any_reader_knows() -> None:
    chain = read_chain("countries.daily")
    payload, count = encode_batch((block.hash, block.raw) for block in chain)
    assert count == len(chain)
    with tarfile.open(fileobj=BytesIO(payload), mode="r:gz") as archive:
        found = {}
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
    assert found == {str(b.hash): b.raw for b in chain}


def test_archive_of_another_writer_is_read() -> None:
    target = BytesIO()
    chain = read_chain("countries.daily")
    with tarfile.open(fileobj=target, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for block in chain:
            entry = tarfile.TarInfo(str(block.hash))
            entry.size = len(block.raw)
            archive.addfile(entry, BytesIO(block.raw))
    found = decode_batch(target.getvalue(), num_blocks=len(chain))
    assert [raw for _, raw in found] == [block.raw for block in chain]


def test_batch_of_a_long_chain_is_cut_to_one_frame_and_goes_on_where_it_was_cut() -> None:
    source = random.Random(1)
    blocks = [(Multihash.of_sha3_256(raw), raw) for raw in (source.randbytes(9_000) for _ in range(1_000))]
    payload, count = encode_batch(blocks)
    assert 0 < count < len(blocks)
    assert len(payload) <= MAX_PAYLOAD_BYTES
    assert len(encode_message(BlocksResponse(blocks=BlocksBatch.of(payload, count)))) <= MAX_FRAME_BYTES
    assert list(decode_batch(payload, num_blocks=count)) == blocks[:count]


def test_payload_of_many_pieces_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_CHUNK_CHARACTERS", 10)
    data = bytes(range(256)) * 3
    assert BlocksBatch.of(data, 1).payload_bytes() == data


@pytest.mark.parametrize(
    "payload",
    ["[1,2,", "{}", '"AAA"', "[256]", "[-1]", "[1.5]", "[[1]]", "[1,,2]", "null"],
)
def test_payload_that_is_no_array_of_bytes_is_malformed(payload: str) -> None:
    text = f'{{"blocks":{{"num_blocks":1,"media_type":"application/tar+gzip","encoding":"raw","payload":{payload}}}}}'
    with pytest.raises(MalformedError):
        decode_message(text.encode(), BlocksResponse).blocks.payload_bytes()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(b"", SmartPullRequest, id="nothing"),
        pytest.param(b"[]", SmartPullRequest, id="another-form"),
        pytest.param(b'{"begin_after":null,"stop_at":null}', SmartPullRequest, id="a-field-is-missing"),
        pytest.param(b'{"begin_after":"x","force_update_if_diverged":false}', SmartPullRequest, id="no-hash"),
        pytest.param(b'{"begin_after":null,"force_update_if_diverged":1}', SmartPullRequest, id="no-boolean"),
        pytest.param(b"{}", Answer, id="neither-ok-nor-err"),
        pytest.param(b'{"Ok":{},"Err":{}}', Answer, id="both-ok-and-err"),
        pytest.param(b"\xff", Empty, id="no-utf-8"),
        pytest.param(b"[" * 100_000, Empty, id="too-deep"),
        pytest.param(b"{" + b" " * 2_000_000 + b"}", Empty, id="too-long"),
        pytest.param(b'{"object_files":[{"object_type":"Other","physical_hash":"f1620","size":1}]}',
                     ObjectsPullRequest, id="unknown-type-of-object"),
        pytest.param(b'{"details":"Done"}', PushProgress, id="unknown-progress"),
    ],
)  # fmt: skip
def test_message_that_is_none_is_malformed(text: bytes, kind: type[msgspec.Struct]) -> None:
    with pytest.raises(MalformedError):
        decode_message(text, kind)


def test_batch_of_another_media_type_is_malformed() -> None:
    text = b'{"blocks":{"num_blocks":0,"media_type":"application/zip","encoding":"raw","payload":[]}}'
    with pytest.raises(MalformedError, match=r"tar\+gzip"):
        decode_message(text, BlocksResponse)


def test_header_that_would_write_a_second_one_is_malformed() -> None:
    strategy = read_recordings()[FIRST].texts("server")[2]
    forged = strategy.replace(b'"value":"1"', b'"value":"1\\r\\nHost: x"', 1)
    assert forged != strategy
    with pytest.raises(MalformedError):
        decode_message(forged, ObjectsPullResponse)


def test_unknown_fields_are_passed_over() -> None:
    text = b'{"begin_after":null,"force_update_if_diverged":true,"since":"tomorrow"}'
    assert decode_message(text, SmartPullRequest).force_update_if_diverged


@pytest.mark.parametrize(
    ("problem", "stated"),
    [
        ({"InvalidInterval": {"head": "f1", "tail": "f2"}}, "no block f2"),
        ({"InvalidHead": {"actual_head": None, "expected_head": "f1"}}, "its head is f1"),
        ({"SeedBlockOverwriteRestricted": {}}, "never replaced"),
        ({"RefCollision": {"dataset_id": "did:odf:x"}}, "did:odf:x under another name"),
        ({"NameCollision": {"dataset_alias": "a/b"}}, "called a/b"),
        ({"Internal": {"phase": {"Pull": "InitialRequest"}, "error_message": "Internal error"}}, "Internal error"),
        ({"SomethingNew": {}}, "does not know"),
        ("Unheard", "Unheard"),
    ],
)
def test_every_rejection_has_a_sentence(problem: object, stated: str) -> None:
    found = decode_message(json.dumps({"Err": problem}).encode(), Answer).problem
    assert found is not None
    assert stated in found.explain()


def test_progress_is_written_as_others_do() -> None:
    text = encode_message(PushProgress(details=Running.of(3)))
    assert text == b'{"details":{"Running":{"uploaded_objects_count":3}}}'
    assert decode_message(text, PushProgress).details == Running.of(3)


def broken(change: str) -> bytes:
    payload = gzip.decompress(recorded_batch().payload_bytes())
    match change:
        case "checksum":
            payload = payload[:150] + b"0" + payload[151:]
        case "link":
            payload = with_checksum(payload[:156] + b"2" + payload[157:])
        case "size":
            payload = with_checksum(payload[:124] + b"77777777777" + payload[135:])
        case "name":
            payload = with_checksum(b"../etc/passwd" + payload[13:])
        case "cut":
            payload = payload[:700]
        case "bomb":
            payload = with_checksum(payload[:124] + b"00000000000" + payload[135:]) + bytes(1)
    return gzip.compress(payload)


def with_checksum(payload: bytes) -> bytes:
    blank = payload[:148] + b" " * 8 + payload[156:512]
    return blank[:148] + b"%07o\0" % sum(blank) + blank[156:] + payload[512:]


@pytest.mark.parametrize("change", ["checksum", "link", "size", "name", "cut", "bomb"])
def test_archive_with_something_else_in_it_is_malformed(change: str) -> None:
    with pytest.raises(MalformedError):
        list(decode_batch(broken(change), num_blocks=recorded_batch().num_blocks))


@pytest.mark.parametrize("stated", [5, 7, 2**31])
def test_batch_with_another_number_of_blocks_is_malformed(stated: int) -> None:
    payload = recorded_batch().payload_bytes()
    assert recorded_batch().num_blocks == 6
    with pytest.raises(MalformedError):
        list(decode_batch(payload, num_blocks=stated))


def test_a_batch_that_inflates_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_READ_BATCH_RAW_BYTES", 100_000)
    raw = bytes(1_000_000)
    payload, _ = encode_batch([(Multihash.of_sha3_256(raw), raw)])
    assert len(payload) < 10_000
    with pytest.raises(MalformedError, match="100000 bytes"):
        list(decode_batch(payload, num_blocks=1))
