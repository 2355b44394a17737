"""Builds the test vectors of our extensions; run as a program to write ``spec/vectors/extensions``.

Everything is derived from fixed keys and times, so building twice gives the same files.
"""

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_protocol.attestations import AttestedStep, sign_attestation
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.dsse import sign_envelope
from odf_protocol.equivocation import EquivocationKind, block_statement, prove_equivocation
from odf_protocol.events import OffsetInterval, SqlQueryStep, TransformSql
from odf_protocol.hashing.v1 import column_array
from odf_protocol.hashing.v1_leaf import LEAF_ROWS, leaf_parts
from odf_protocol.hashing.v1_types import decode_schema, encode_schema, iter_columns
from odf_protocol.heads import sign_head
from odf_protocol.in_toto import PAYLOAD_TYPE, BlockRef
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_recovery, sign_recovery_key, sign_rotation
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.signatures import Purpose, public_key_of, sign, sign_block, sign_document
from odf_protocol.step_metrics import RowsByOperation, StateSize, StepMetrics
from odf_protocol.step_record import EngineIdentity, InputWatermark, StepInput, StepRecord, StepSlice, hash_transform
from odf_protocol.step_record_codec import decode_step_record, sign_step_record
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.gossip_vectors import gossip_vectors
from support.logical_hash import hash_table

FOLDER = Path(__file__).parents[2] / "spec" / "vectors" / "extensions"

DATASET_KEY, NODE_KEY, NEXT_KEY = b"\x01" * 32, b"\x02" * 32, b"\x03" * 32
DATASET = DatasetId(public_key_of(DATASET_KEY))
INPUT = DatasetId(public_key_of(NEXT_KEY))
DECIMALS = [Decimal("1.23"), Decimal("-1.23")]
NOON = Timestamp.parse("2024-05-01T12:00:00Z")
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


def _hash(text: str) -> Multihash:
    return Multihash.of_sha3_256(text.encode())


def _signatures() -> dict[str, Any]:
    cases = []
    for purpose, payload in ((Purpose.HEAD, b"payload"), (Purpose.STEP_RECORD, b"\x00")):
        signature = sign(DATASET_KEY, purpose, payload)
        cases.append({"purpose": purpose.value, "payload": payload.hex(), "signature": signature.hex()})
    good = sign(DATASET_KEY, Purpose.HEAD, b"payload")
    scalar = int.from_bytes(good[32:], "little") + GROUP_ORDER
    neutral = (1).to_bytes(32, "little")
    public = public_key_of(DATASET_KEY)
    rejected = [
        ("SIG-8", "signature too short", public, good[:63]),
        ("SIG-9", "key is the neutral point, for which R and S = 0 fit every message", neutral, neutral + bytes(32)),
        ("SIG-9", "key in its second spelling", (2**255 - 18).to_bytes(32, "little"), good),
        ("SIG-10", "R is the neutral point", public, neutral + good[32:]),
        ("SIG-11", "S plus the group order", public, good[:32] + scalar.to_bytes(32, "little")),
        ("SIG-1", "another key", public_key_of(NODE_KEY), good),
    ]
    return {
        "comment": "Ed25519 with purposes (SIG-2); keys are 32 equal bytes. Rejected: purpose head, payload 'payload'.",
        "privateKey": DATASET_KEY.hex(),
        "publicKey": public.hex(),
        "signed": cases,
        "block": {
            "dataset": str(DATASET),
            "sequenceNumber": 7,
            "blockHash": str(_hash("block")),
            "signature": sign_block(DATASET_KEY, DATASET, 7, _hash("block")).hex(),
        },
        "rejected": [
            {"rejectedBy": rule, "why": why, "publicKey": key.hex(), "signature": signature.hex()}
            for rule, why, key, signature in rejected
        ],
    }


def _head(number: int, text: str, expires: Timestamp | None = None) -> bytes:
    return sign_head(
        DATASET_KEY, dataset_id=DATASET, sequence_number=number, block_hash=_hash(text), time=NOON, expires=expires
    )


def _heads() -> dict[str, Any]:
    heads = [_head(7, "head"), _head(0, "seed", replace(NOON, seconds=NOON.seconds + 60))]
    return {
        "comment": "Signed heads (HEAD-1): document in base64, its payload as text.",
        "dataset": str(DATASET),
        "heads": [{"document": _base64(raw), "payload": raw[96:].decode()} for raw in heads],
        "rejected": [
            _refused("SIG-1", "one byte of the payload changed", heads[0][:-3] + b"0" + heads[0][-2:]),
            _refused("SIG-1", "another purpose", sign_document(DATASET_KEY, Purpose.KEY_EVENT, _payload(0)).to_bytes()),
            _refused("HEAD-3", "expires when it is signed", _resigned(_payload(1).replace(b":01:00Z", b":00:00Z"))),
            _refused("HEAD-4", "another key", sign_document(NODE_KEY, Purpose.HEAD, _payload(0)).to_bytes()),
            _refused("HEAD-1", "payload with a space", _resigned(_payload(0) + b" "), "malformed"),
            _refused("SIG-6", "signature and no payload", heads[0][:96], "malformed"),
        ],
    }


def _payload(index: int) -> bytes:
    return (_head(7, "head"), _head(0, "seed", replace(NOON, seconds=NOON.seconds + 60)))[index][96:]


def _resigned(payload: bytes) -> bytes:
    return sign_document(DATASET_KEY, Purpose.HEAD, payload).to_bytes()


def _refused(rule: str, why: str, raw: bytes, rejection: str = "rejected") -> dict[str, str]:
    return {"rejectedBy": rule, "why": why, "refusal": rejection, "document": _base64(raw)}


RECOVERY_KEY = b"\x0a" * 32


def _keys() -> dict[str, Any]:
    keys = {name: DidKey(public_key_of(key)) for name, key in _KEYS_OF_THE_LOG.items()}
    history = KeyHistory.start(DATASET)
    documents = []
    for sign_next in (
        lambda log: sign_rotation(DATASET_KEY, log, new_key=keys["second"], first_sequence_number=10, time=NOON),
        lambda log: sign_recovery_key(NODE_KEY, log, recovery_key=keys["recovery"], time=NOON),
        lambda log: sign_recovery(
            RECOVERY_KEY,
            log,
            new_key=keys["third"],
            first_sequence_number=20,
            stolen_from=15,
            keeps=_hash("kept"),
            time=NOON,
        ),
    ):
        raw = sign_next(history)
        history = history.extend(raw)
        documents.append({"document": _base64(raw), "payload": raw[96:].decode()})
    return {
        "comment": "A key log (KEY-1), the keys that speak for blocks, heads by these keys, and events nobody takes.",
        "dataset": str(DATASET),
        "events": documents,
        "keyAt": {str(number): str(history.key_at(number)) for number in (0, 9, 10, 14, 15, 19, 20)},
        "vouchings": [
            _signed_by(keys["second"], 9, "one", "a later key may vouch for an older block"),
            _signed_by(keys["second"], 14, "one", "before the theft"),
            _signed_by(keys["second"], 19, "kept", "the last block of the kept history"),
            _signed_by(keys["third"], 19, "kept", "the same by the next key"),
            _signed_by(keys["third"], 25, "one", "the key in force"),
            _signed_by(keys["recovery"], 25, "one", "a recovery key signs no heads", "KEY-5"),
            _signed_by(DidKey(DATASET.public_key), 10, "one", "a key that was given up", "KEY-5"),
            _signed_by(keys["second"], 20, "one", "a stolen key, after the window", "KEY-5"),
            _signed_by(keys["second"], 15, "one", "a stolen key, in the window", "KEY-11"),
            _signed_by(keys["third"], 19, "other", "another history than the kept one", "KEY-12"),
        ],
        "rejected": _rejected_key_events(history),
    }


def _signed_by(signer: DidKey, number: int, text: str, why: str, rule: str | None = None) -> dict[str, Any]:
    stated = {"signer": str(signer), "sequenceNumber": number, "blockHash": str(_hash(text)), "why": why}
    return stated | {"rejectedBy": rule, "refusal": "rejected"}


def _rejected_key_events(history: KeyHistory) -> list[dict[str, Any]]:
    """Events after the second or third one of the log, each wrong in one way."""

    def event(changes: dict[str, Any], key: bytes = NEXT_KEY, *, after: int = 3) -> bytes:
        stated = {
            "version": 1,
            "type": "key-event",
            "change": "rotation",
            "dataset": str(DATASET),
            "index": after,
            "previous": str(history.events[after - 1].hash),
            "newKey": str(DidKey(public_key_of(b"\x04" * 32))),
            "firstSequenceNumber": 30,
            "time": str(NOON),
        } | changes
        stated = {name: value for name, value in sorted(stated.items()) if value is not None}
        payload = json.dumps(stated, separators=(",", ":")).encode()
        return sign_document(key, Purpose.KEY_EVENT, payload).to_bytes()

    def recovery(changes: dict[str, Any], key: bytes = RECOVERY_KEY, *, after: int = 3) -> bytes:
        stated = {"change": "recovery", "stolenFrom": 25, "keeps": str(_hash("kept"))}
        return event(stated | changes, key, after=after)

    history.extend(event({}))
    history.extend(recovery({}))
    newer = str(DidKey(public_key_of(b"\x05" * 32)))
    return [
        {"after": 3} | each
        for each in (
            _refused("KEY-2", "another dataset", event({"dataset": str(INPUT)})),
            _refused("KEY-3", "an index left out", event({"index": 4})),
            _refused("KEY-3", "after another event", event({"previous": str(_hash("other"))})),
            _refused("KEY-4", "by the key before", event({}, NODE_KEY)),
            _refused("KEY-5", "from a block on that another key speaks for", event({"firstSequenceNumber": 19})),
            _refused("KEY-6", "a key that was given up", event({"newKey": str(DidKey(DATASET.public_key))})),
            _refused("KEY-6", "a recovery key that shall speak", event({"newKey": str(history.recovery_key)})),
            _refused("KEY-1", "a field that is not known", event({"zone": "here"}), "malformed"),
            _refused("KEY-1", "a rotation that keeps a history", event({"keeps": str(_hash("kept"))})),
            _refused("KEY-1", "a rotation without a key", event({"newKey": None})),
            _refused("KEY-9", "a recovery by the key in force", recovery({}, NEXT_KEY)),
            _refused(
                "KEY-9",
                "another recovery key, named by the key in force",
                event({"change": "recovery-key", "newKey": None, "firstSequenceNumber": None, "recoveryKey": newer}),
            ),
            _refused("KEY-10", "a window before the stolen key's time", recovery({"stolenFrom": 19})),
            _refused("KEY-10", "a window that ends before it begins", recovery({"stolenFrom": 31})),
            {"after": 1} | _refused("KEY-9", "a recovery that nobody prepared", recovery({}, NODE_KEY, after=1)),
        )
    ]


_KEYS_OF_THE_LOG = {"second": NODE_KEY, "third": NEXT_KEY, "recovery": RECOVERY_KEY}


def step_record() -> StepRecord:
    """The record of the vectors."""
    query = TransformSql(engine="spark", queries=(SqlQueryStep(query="select * from trades"),))
    return StepRecord(
        dataset_id=DATASET,
        engine=EngineIdentity("spark", "4.3.0", _hash("engine")),
        settings={"spark.sql.session.timeZone": "UTC"},
        limits={"memory_bytes": 2147483648, "wall_ms": 600000},
        transform=hash_transform(query),
        vocabulary=Vocabulary(),
        inputs=(
            StepInput(
                dataset_id=INPUT,
                alias="trades",
                vocabulary=Vocabulary(event_time="date"),
                slices=(StepSlice(Multihash(ARROW0_SHA3_256, bytes(32)), _hash("file")),),
                offset_interval=OffsetInterval(start=10, end=19),
                watermarks=(InputWatermark(NOON, Timestamp(0)),),
            ),
        ),
        system_time=NOON,
        next_offset=5,
        prev_checkpoint=_hash("checkpoint"),
        prev_watermark=Timestamp(0),
    )


_STATISTICS = StepMetrics(
    rows_read=(10,),
    rows_out=RowsByOperation(append=3, retract=1, correct_from=2, correct_to=2),
    late_rows=1,
    state_before=StateSize(rows=10, size_bytes=2048),
    state_after=StateSize(rows=20, size_bytes=4096),
    milliseconds={"computing": 250, "reading": 3},
)


def _reexecute() -> dict[str, Any]:
    raw = sign_step_record(NODE_KEY, step_record())
    figures = sign_step_record(NODE_KEY, replace(step_record(), statistics=_STATISTICS))
    return {
        "comment": "A signed step record (REPLAY-1) and its identity; one with figures (REPLAY-13).",
        "withStatistics": {
            "document": _base64(figures),
            "payload": figures[96:].decode(),
            "hash": str(decode_step_record(figures).hash),
        },
        "document": _base64(raw),
        "payload": raw[96:].decode(),
        "hash": str(decode_step_record(raw).hash),
        "rejected": [
            _refused("SIG-1", "one byte of the payload changed", raw[:-3] + b"0" + raw[-2:]),
            _refused("REPLAY-1", "cut short and signed anew", _resigned_record(raw[96:-1]), "malformed"),
        ],
    }


def _resigned_record(payload: bytes) -> bytes:
    return sign_document(NODE_KEY, Purpose.STEP_RECORD, payload).to_bytes()


def _attestations() -> dict[str, Any]:
    steps = (
        AttestedStep(
            block=BlockRef(4, _hash("block 4")),
            agrees=True,
            logical_hash=Multihash(ARROW0_SHA3_256, bytes(32)),
            step_record=_hash("record"),
        ),
        AttestedStep(block=BlockRef(9, _hash("block 9")), agrees=True, logical_hash=None),
    )
    diverging = (replace(steps[0], agrees=False, difference="cells"),)
    envelopes = [
        sign_attestation(
            NODE_KEY,
            dataset_id=DATASET,
            first=BlockRef(3, _hash("block 3")),
            last=BlockRef(9, _hash("block 9")),
            engine=EngineIdentity("spark", "4.3.0", _hash("engine")),
            steps=found,
            time=NOON,
        )
        for found in (steps, diverging)
    ]
    return {
        "comment": "Attestations (ATTEST-1) in their envelopes, as text, and the statements inside.",
        "attestations": [
            {"envelope": raw.decode(), "statement": base64.b64decode(json.loads(raw)["payload"]).decode()}
            for raw in envelopes
        ],
        "rejected": [
            {"rejectedBy": rule, "why": why, "refusal": rejection, "envelope": raw.decode()}
            for rule, why, rejection, raw in _rejected_attestations(envelopes[0])
        ],
    }


def _rejected_attestations(good: bytes) -> list[tuple[str, str, str, bytes]]:
    statement = base64.b64decode(json.loads(good)["payload"])

    def changed(old: bytes, new: bytes) -> bytes:
        assert old in statement
        return sign_envelope(NODE_KEY, PAYLOAD_TYPE, statement.replace(old, new))

    return [
        ("SIG-1", "one byte of the signature changed", "rejected", _with_other_signature(good)),
        ("DSSE-2", "another type of payload", "rejected", sign_envelope(NODE_KEY, "text/plain", statement)),
        ("ATTEST-4", "by another node", "rejected", sign_envelope(DATASET_KEY, PAYLOAD_TYPE, statement)),
        ("ATTEST-1", "a verdict that is not known", "malformed", changed(b'"success"', b'"perhaps"')),
        ("ATTEST-7", "a success that is called a divergence", "rejected", changed(b'"success"', b'"divergence"')),
    ]


def _with_other_signature(envelope: bytes) -> bytes:
    stated = json.loads(envelope)
    signature = bytearray(base64.b64decode(stated["signatures"][0]["sig"]))
    signature[3] ^= 1
    stated["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    return json.dumps(stated, separators=(",", ":")).encode()


def _equivocation() -> dict[str, Any]:
    signer = DidKey(DATASET.public_key)
    blocks = [
        block_statement(DATASET, 7, _hash(text), signer, sign_block(DATASET_KEY, DATASET, 7, _hash(text)))
        for text in ("one", "other")
    ]
    history = KeyHistory.start(DATASET)
    events = [
        sign_rotation(DATASET_KEY, history, new_key=DidKey(public_key_of(key)), first_sequence_number=3, time=NOON)
        for key in (NODE_KEY, NEXT_KEY)
    ]
    proofs = [
        prove_equivocation(EquivocationKind.HEADS, _head(7, "one"), _head(7, "other")),
        prove_equivocation(EquivocationKind.BLOCKS, *blocks),
        prove_equivocation(EquivocationKind.KEY_EVENTS, *events),
        prove_equivocation(EquivocationKind.HEAD_AND_BLOCK, _head(7, "one"), blocks[1]),
    ]
    return {
        "comment": "Proofs of equivocation (EQUIV-1), as text, and what they prove.",
        "dataset": str(DATASET),
        "signer": str(signer),
        "proofs": [
            {
                "proof": proof.raw.decode(),
                "kind": proof.kind.value,
                "position": proof.position,
                "first": str(proof.first),
                "second": str(proof.second),
            }
            for proof in proofs
        ],
        "rejected": _rejected_proofs(proofs[0].raw),
    }


def _rejected_proofs(good: bytes) -> list[dict[str, str]]:
    stated = json.loads(good)
    same = {**stated, "second": stated["first"]}
    other = {**stated, "kind": "blocks"}
    mixed = {**stated, "kind": "head-and-block"}
    return [
        {"why": why, "refusal": rejection, "proof": json.dumps(proof, separators=(",", ":"))}
        for why, rejection, proof in (
            ("twice the same head", "rejected", same),
            ("heads called blocks", "malformed", other),
            ("two heads called a head and a block", "rejected", mixed),
        )
    ]


def tables() -> dict[str, pa.RecordBatch]:
    """The tables of the vectors of the logical hash, by what they show."""
    struct = pa.struct([("x", pa.int8()), ("y", pa.list_(pa.string()))])
    floats = pa.array([0.0, -0.0, float("nan"), None, 1.5])
    pair = {"a": pa.array([1, None, 3], pa.int16()), "b": ["x", "", "yz"]}
    return {
        "no rows": pa.record_batch({"a": pa.array([], pa.int64())}),
        "int16 [1, null, 3] and text [x, '', yz]": pa.record_batch(pair),
        "text ['', null]": pa.record_batch({"a": ["", None]}),
        "text [null, '']": pa.record_batch({"a": [None, ""]}),
        "int16 [null, 0]": pa.record_batch({"a": pa.array([None, 0], pa.int16())}),
        "int16 [0, null]": pa.record_batch({"a": pa.array([0, None], pa.int16())}),
        "double [0, -0, NaN, null, 1.5]": pa.record_batch({"f": floats}),
        "boolean [true, null, false]": pa.record_batch({"b": [True, None, False]}),
        "decimal(10, 2) [1.23, -1.23]": pa.record_batch({"d": pa.array(DECIMALS, pa.decimal128(10, 2))}),
        "timestamp(ms, UTC) [1970-01-01]": pa.record_batch({"t": pa.array([0], pa.timestamp("ms", "UTC"))}),
        "list of int32 [[1, 2], null, []]": pa.record_batch({"l": pa.array([[1, 2], None, []], pa.list_(pa.int32()))}),
        "struct {x int8, y list of text} [{1, [a, null]}, null]": pa.record_batch(
            {"s": pa.array([{"x": 1, "y": ["a", None]}, None], struct)}
        ),
        "int64 0 to 69999": pa.record_batch({"n": pa.array(range(70_000))}),
    }


def _logical_hash() -> dict[str, Any]:
    cases = []
    for what, batch in tables().items():
        summary = hash_table(batch.schema, [batch])
        cases.append(
            {
                "what": what,
                "rows": batch.num_rows,
                "schema": encode_schema(batch.schema).hex(),
                "content": _leaf_contents(batch) if batch.num_rows < LEAF_ROWS else None,
                "leaves": [[leaf.hex() for leaf in levels[0]] for levels in summary.levels],
                "root": str(summary.root),
            }
        )
    return {
        "comment": "Roots of small tables (LH1-1), schemas (LH1-4); by column the bytes of a single leaf, and "
        "leaf hashes (LH1-6).",
        "tables": cases,
    }


def _leaf_contents(batch: pa.RecordBatch) -> list[str]:
    columns = iter_columns(decode_schema(encode_schema(batch.schema)))
    return [b"".join(leaf_parts(column_array(batch, column), is_column=True)).hex() for column in columns]


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


BUILDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "signatures": _signatures,
    "heads": _heads,
    "keys": _keys,
    "replay": _reexecute,
    "attestations": _attestations,
    "equivocation": _equivocation,
    "gossip": gossip_vectors,
    "logical-hash-v1": _logical_hash,
}


def text_of(name: str) -> str:
    """The content of one file."""
    return json.dumps({"kind": name, **BUILDERS[name]()}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for wanted in sys.argv[1:] or BUILDERS:
        (FOLDER / f"{wanted}.json").write_text(text_of(wanted), encoding="utf-8")
