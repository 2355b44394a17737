"""Judging evidence of anybody: what is proved, what is only said, what is worth nothing."""

import json

import pytest

from odf_protocol.equivocation import block_statement
from odf_protocol.errors import MalformedError
from odf_protocol.heads import sign_head
from odf_protocol.in_toto import BlockRef
from odf_protocol.judging import BundleDocument, DocumentSort, Weight, decode_bundle, encode_bundle, judge
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_rotation
from odf_protocol.signatures import sign_block
from odf_protocol.verification_statements import Checked, VerificationProblem, sign_verification
from support.key_logs import KeyLog
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, NOON, OTHER_KEY, dataset_of, did_key_of, some_hash

DATASET = dataset_of(DATASET_KEY)


def head(number: int, text: str, key: bytes = DATASET_KEY) -> BundleDocument:
    raw = sign_head(key, dataset_id=DATASET, sequence_number=number, block_hash=some_hash(text), time=NOON)
    return BundleDocument(DocumentSort.SIGNED_HEAD, raw)


def block(number: int, text: str, key: bytes = DATASET_KEY) -> BundleDocument:
    signature = sign_block(key, DATASET, number, some_hash(text))
    raw = block_statement(DATASET, number, some_hash(text), did_key_of(key), signature)
    return BundleDocument(DocumentSort.BLOCK_STATEMENT, raw)


def key_event(new_key: bytes) -> BundleDocument:
    history = KeyHistory.start(DATASET)
    raw = sign_rotation(DATASET_KEY, history, new_key=did_key_of(new_key), first_sequence_number=2, time=NOON)
    return BundleDocument(DocumentSort.KEY_EVENT, raw)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (head(3, "a"), head(3, "b")),
        (block(3, "a"), block(3, "b")),
        (key_event(NEW_KEY), key_event(OTHER_KEY)),
        (head(3, "a"), block(3, "b")),
    ],
    ids=["heads", "blocks", "key events", "head and block"],
)
def test_pair_that_contradicts_is_found_without_being_told(one: BundleDocument, other: BundleDocument) -> None:
    judgement = judge([other, one])

    assert judgement.guilty == ((did_key_of(DATASET_KEY), DATASET),)
    assert (judgement.findings[0].weight, judgement.findings[0].documents) == (Weight.PROVED, (0, 1))
    assert "two histories" in judgement.findings[0].says


def test_key_that_said_many_things_is_proved_by_a_pair_for_each_and_no_more() -> None:
    """JUDGE-3: a thousand documents are half a million pairs, each of several signatures."""
    stated = [(block if number % 2 else head)(3, str(number)) for number in range(60)]
    stated += [block(3, "0"), head(3, "1"), head(3, "2")]  # what was said before, in other documents

    judgement = judge(stated)

    pairs = [each.documents for each in judgement.findings if "two histories" in each.says]
    assert sorted(max(pair) for pair in pairs) == [*range(1, 63)]
    assert all(min(pair) < 2 for pair in pairs)
    assert judgement.guilty == ((did_key_of(DATASET_KEY), DATASET),)


@pytest.mark.parametrize(
    "documents",
    [
        [head(3, "a"), head(4, "b")],
        [head(3, "a"), head(3, "b", OTHER_KEY)],
        [head(3, "a"), head(3, "a")],
        [head(3, "a"), block(3, "b", OTHER_KEY)],
        [head(3, "a"), block(3, "a")],
        [head(3, "a"), block(2, "b")],
    ],
    ids=["other numbers", "other keys", "the same twice", "a stranger's block", "head of the block", "block below"],
)
def test_honest_key_is_not_called_guilty(documents: list[BundleDocument]) -> None:
    assert judge(documents).guilty == ()


def test_word_of_an_auditor_is_a_claim_however_it_sounds() -> None:
    counts = Checked(blocks=1, slices=1, slices_in_range=1, rows=1, steps=0, steps_in_range=0)
    ref = BlockRef(3, some_hash("a"))
    raw = sign_verification(
        NODE_KEY,
        dataset_id=DATASET,
        first=ref,
        last=ref,
        checked=counts,
        problem=VerificationProblem("ROWS-5", "bad"),
        time=NOON,
    )
    (found,) = judge([BundleDocument(DocumentSort.STATEMENT, raw)]).findings

    assert (found.weight, found.who) == (Weight.CLAIMED, did_key_of(NODE_KEY))
    assert "not valid: bad" in found.says


@pytest.mark.parametrize("sort", list(DocumentSort))
def test_document_that_is_not_what_it_is_called_is_worthless_and_spoils_nothing(sort: DocumentSort) -> None:
    judgement = judge([BundleDocument(sort, b"rubbish"), BundleDocument(sort, b""), head(3, "a"), head(3, "b")])

    assert [found.weight for found in judgement.findings].count(Weight.WORTHLESS) == 2
    assert len(judgement.guilty) == 1


def test_forged_signature_is_worthless() -> None:
    forged = bytearray(head(3, "a").content)
    forged[40] ^= 1
    judgement = judge([BundleDocument(DocumentSort.SIGNED_HEAD, bytes(forged)), head(3, "b")])

    assert judgement.guilty == ()
    assert judgement.findings[-1].weight is Weight.WORTHLESS


@pytest.mark.parametrize(
    "change",
    [{"kind": "Other"}, {"version": 2}, {"more": 1}, {"documents": [{"sort": "gossip", "content": ""}]}],
    ids=["kind", "version", "unknown field", "unknown sort"],
)
def test_what_is_no_bundle_is_malformed(change: dict[str, object]) -> None:
    bundle = json.loads(encode_bundle([head(1, "a")])) | change
    with pytest.raises(MalformedError):
        decode_bundle(json.dumps(bundle).encode())


def test_bundle_of_too_many_documents_is_malformed() -> None:
    with pytest.raises(MalformedError):
        decode_bundle(encode_bundle(BundleDocument(DocumentSort.STATEMENT, b"%d" % n) for n in range(1001)))


def test_key_log_in_a_bundle_says_for_whom_keys_spoke_and_when_they_were_stolen() -> None:
    log = KeyLog(DATASET_KEY).prepare()
    thief, kept = log.rotate(OTHER_KEY, 3), some_hash("a")
    back = log.recover(NEW_KEY, 4, stolen_from=3, keeps=kept)
    events = [BundleDocument(DocumentSort.KEY_EVENT, raw) for raw in dict.fromkeys(thief.raws + back.raws)]
    stolen = [head(3, "a"), head(3, "b")]

    judged = judge([*stolen, *reversed(events)])
    says = [found.says for found in judged.findings]

    assert len(judged.guilty) == 1
    assert any("a recovery declares stolen from block 3 on: not the owner's word" in text for text in says)
    assert sum("this key was stolen from block 3 on" in text for text in says) == 2
    assert sum("void: not in the key log" in text for text in says) == 1
    without = [found.says for found in judge(stolen).findings]
    assert any("the key that the dataset began with" in text for text in without)


def test_head_by_a_key_after_its_rotation_is_called_that() -> None:
    log = KeyLog(DATASET_KEY).rotate(OTHER_KEY, 3)
    event = BundleDocument(DocumentSort.KEY_EVENT, log.raws[0])
    late, early = (judge([event, head(number, "a")]).findings[-1].says for number in (3, 2))
    assert "does not speak for this block" in late
    assert "does not speak" not in early
