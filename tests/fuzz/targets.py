"""What bytes of strangers reach: one function per entrance, which raises nothing but declared errors on any input.

A target takes bytes, gives them to the code under test and checks what must hold of the outcome. ``Target.run``
swallows the declared errors, so whatever it raises is a finding. Seeds are valid inputs, from which mutations start.
Whole files, Parquet and archives, are in ``file_targets``.

Two kinds of target get behind a check that mutations would never pass: signed documents are signed anew with a known
key after they were changed, and blocks are linked anew to the chain before them.
"""

import base64
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from fuzz.file_targets import FILE_TARGETS
from fuzz.pattern_targets import PATTERN_TARGETS
from fuzz.smart_targets import SMART_TARGETS
from fuzz.target import Target
from fuzz.text_targets import TEXT_TARGETS
from odf_protocol.acceptance_statements import decode_acceptance, sign_acceptance
from odf_protocol.annotate import annotate_block
from odf_protocol.attestations import decode_attestation
from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.dsse import decode_envelope, sign_envelope
from odf_protocol.equivocation import check_equivocation
from odf_protocol.errors import CorruptError, MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.events import DataSchema, SetDataSchema
from odf_protocol.events.equality import means_the_same
from odf_protocol.exchange.packs import PackedBlock, decode_pack, encode_pack
from odf_protocol.heads import decode_signed_head
from odf_protocol.in_toto import PAYLOAD_TYPE, BlockRef
from odf_protocol.key_events import decode_key_event
from odf_protocol.manifest import (
    ManifestError,
    manifest_to_json,
    manifest_to_yaml,
    parse_manifests,
)
from odf_protocol.manifest.documents import DatasetSnapshot
from odf_protocol.multibase import decode_multibase
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetPattern, parse_any_ref
from odf_protocol.policy import Trust
from odf_protocol.schema_compat import describe_type, find_incompatibility
from odf_protocol.schema_ddl import parse_ddl
from odf_protocol.signatures import Purpose, sign_document
from odf_protocol.step_record_codec import decode_step_record
from odf_protocol.timestamp import Timestamp
from support.manifests import parse_manifest

__all__ = ["TARGETS", "Target"]

ROOT = Path(__file__).parents[2]
KAMU = ROOT / "tests" / "data" / "kamu"
VECTORS = ROOT / "spec" / "vectors"
PRIVATE_KEY = b"\x01" * 32
SIGNED_HEADER_BYTES = 96  # key and signature in front of the payload of a signed document
MAX_BLOCKS = 12  # of a chain that is judged: enough for every rule, few enough for thousands of tries


@cache
def _kamu_chains() -> tuple[tuple[bytes, ...], ...]:
    chains = []
    for folder in sorted((KAMU / "datasets").iterdir()):
        raws: list[bytes] = []
        name: Multihash | None = Multihash.parse((folder / "refs" / "head").read_text())
        while name is not None:
            raws.append((folder / "blocks" / str(name)).read_bytes())
            name = decode_block(raws[-1], expected_hash=name).prev_block_hash
        chains.append(tuple(raws[::-1]))
    return tuple(chains)


@cache
def _vectors(name: str) -> dict:  # type: ignore[type-arg]
    return json.loads((VECTORS / f"{name}.json").read_text())  # type: ignore[no-any-return]


@cache
def _blocks() -> tuple[bytes, ...]:
    vectors = _vectors("blocks")
    stated = [bytes.fromhex(case["bytes_hex"]) for part in ("accepted", "rejected") for case in vectors[part]]
    return (*stated, *(raw for chain in _kamu_chains() for raw in chain))


def _decode_block(data: bytes) -> None:
    block = decode_block(data, expected_hash=None)
    again = decode_block(
        encode_block(
            block.event,
            system_time=block.system_time,
            prev_block_hash=block.prev_block_hash,
            sequence_number=block.sequence_number,
            version=block.version,
        ),
        expected_hash=None,
    )
    assert again.event == block.event
    _show_block(block)
    if isinstance(block.event, SetDataSchema) and block.event.schema is not None:
        _use_schema(block.event.schema)


def _show_block(block: Block) -> None:
    for text, name in ((manifest_to_yaml(block), "block.yaml"), (manifest_to_json(block), "block.json")):
        try:
            shown = parse_manifest(text, source_name=name)
        except ManifestError as error:
            # What people write is bounded tighter than what blocks may hold (MAN-10), and texts of a block may hold
            # characters that YAML has no way to write.
            raise UnsupportedError("text form of this block", found=error) from error
        assert means_the_same(shown.event, block.event), (shown.event, block.event)


def _use_schema(schema: DataSchema) -> None:
    from odf_protocol.schema_arrow import arrow_schema_of, data_schema_of
    from odf_protocol.schema_spark import spark_type_of

    for field in schema.fields:
        describe_type(field.type)
    problem = find_incompatibility(schema, schema)
    assert problem is None or "twice" in problem, problem
    for field in schema.fields:
        try:
            spark_type_of(field.type)
        except UnsupportedError:
            continue
    data_schema_of(arrow_schema_of(schema))


def _frames(data: bytes) -> Iterator[bytes]:
    position = 0
    for _ in range(MAX_BLOCKS):
        if position >= len(data):
            return
        (length,) = struct.unpack_from("<H", data.ljust(position + 2, b"\0"), position)
        yield data[position + 2 : position + 2 + length]
        position += 2 + length


def _framed(raws: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<H", len(raw)) + raw for raw in raws)


def _verify_chain(data: bytes) -> None:
    """The first byte says whether blocks are linked anew; both verifiers must come to one end."""
    if not data:
        return
    raws = _linked(data[1:]) if data[0] & 1 else list(_frames(data[1:]))
    strictness = Strictness.OWN if data[0] & 2 else Strictness.FOREIGN
    state: ChainState | None = None
    verifier = ChainVerifier(None, strictness=strictness)
    for raw in raws:
        outcomes: list[object] = []
        try:
            state, _warnings = append(state, decode_block(raw, expected_hash=None), strictness=strictness)
        except OdfError as error:
            outcomes.append(error)
        try:
            verifier.verify([raw])
        except OdfError as error:
            outcomes.append(error)
        if outcomes:
            assert len(outcomes) == 2, outcomes
            assert str(outcomes[0]) == str(outcomes[1]), outcomes
            raise outcomes[0]  # type: ignore[misc]
        assert verifier.state == state
        assert state is not None
        assert decode_state(encode_state(state)) == state


def _linked(data: bytes) -> list[bytes]:
    raws: list[bytes] = []
    previous: Block | None = None
    for frame in _frames(data):
        block = decode_block(frame, expected_hash=None)
        raw = encode_block(
            block.event,
            system_time=block.system_time if previous is None else max(block.system_time, previous.system_time),
            prev_block_hash=None if previous is None else previous.hash,
            sequence_number=0 if previous is None else previous.sequence_number + 1,
            version=block.version,
        )
        previous = decode_block(raw, expected_hash=None)
        raws.append(raw)
    return raws


def _chain_seeds() -> list[bytes]:
    return [bytes([mode]) + _framed(chain[:MAX_BLOCKS]) for chain in _kamu_chains() for mode in range(3)]


def _annotate(data: bytes) -> None:
    notes = annotate_block(data)
    assert b"".join(note.data for note in notes) == data
    for note in notes:
        str(note)


def _parse_manifests(name: str) -> Callable[[bytes], None]:
    def attempt(data: bytes) -> None:
        for manifest in parse_manifests(data, source_name=name):
            if isinstance(manifest, DatasetSnapshot):
                written = manifest_to_yaml(manifest)
                assert parse_manifests(written, source_name="written.yaml") == (manifest,)

    return attempt


def _yaml_seeds() -> list[bytes]:
    files = [*sorted((KAMU / "manifests").rglob("*.yaml")), *sorted((KAMU / "logs").rglob("*.yaml"))]
    shown = [manifest_to_yaml(decode_block(raw, expected_hash=None)).encode() for raw in _kamu_chains()[0]]
    return [*(data for path in files if len(data := path.read_bytes()) < 20_000), *shown]


def _json_seeds() -> list[bytes]:
    shown = [manifest_to_json(decode_block(raw, expected_hash=None)).encode() for raw in _known_good_blocks()]
    snapshot = {"kind": "DatasetSnapshot", "version": 1, "content": {"name": "a.b", "kind": "Root", "metadata": []}}
    return [*shown, json.dumps(snapshot).encode()]


def _known_good_blocks() -> list[bytes]:
    return [bytes.fromhex(case["bytes_hex"]) for case in _vectors("blocks")["accepted"]]


def _parse_ddl(data: bytes) -> None:
    parse_ddl(data.decode("utf-8", "replace").split("\n"))


def _ddl_seeds() -> list[bytes]:
    return [
        b"id BIGINT NOT NULL\nname STRING\nprice DECIMAL(10, 2)\nat TIMESTAMP",
        b"`a b` ARRAY<STRUCT<x: INT, y: MAP<STRING, DOUBLE>>> COMMENT 'it''s'",
        b'"q""uoted" VARCHAR(20), flag BOOLEAN, day DATE, raw BINARY, t TIME(3), z TIMESTAMP(6) WITH TIME ZONE',
        b"a FLOAT /* note */, -- more\nb REAL, c DOUBLE PRECISION, d INTERVAL, e TINYINT UNSIGNED, f INT[]",
    ]


_IDENTIFIERS: tuple[Callable[[str], object], ...] = (
    Multihash.parse,
    DatasetId.parse,
    DidKey.parse,
    Timestamp.parse,
    DatasetPattern.parse,
    decode_multibase,
    lambda text: parse_any_ref(text, is_repo=lambda repo: len(repo.text) % 2 == 0),
)


def _parse_identifier(data: bytes) -> None:
    if not data:
        return
    value = _IDENTIFIERS[data[0] % len(_IDENTIFIERS)](data[1:].decode("utf-8", "replace"))
    str(value)
    if isinstance(value, Multihash | DatasetId | DidKey | Timestamp):
        assert type(value).parse(str(value)) == value


def _identifier_seeds() -> list[bytes]:
    document = _vectors("identifiers")
    texts = [(0, case["base58btc"]) for case in document["multihashes"]]
    texts += [(1, case["did_odf"]) for case in document["keys"]] + [(2, case["did_key"]) for case in document["keys"]]
    texts += [(3, case["text"]) for case in _vectors("timestamps")["accepted"]]
    texts += [(6, case["text"]) for case in _vectors("names")["accepted"]]
    texts += [(4, case["pattern"]) for case in _vectors("names")["patterns"]]
    return [bytes([which]) + text.encode() for which, text in texts]


_SIGNED: dict[Purpose, Callable[[bytes], object]] = {
    Purpose.HEAD: decode_signed_head,
    Purpose.KEY_EVENT: decode_key_event,
    Purpose.STEP_RECORD: decode_step_record,
}


def _decode_signed(data: bytes) -> None:
    """The first byte chooses the document, and whether it is signed anew."""
    if not data:
        return
    purpose = list(_SIGNED)[data[0] % len(_SIGNED)]
    if data[0] < 128 and len(data) > 1:
        _SIGNED[purpose](sign_document(PRIVATE_KEY, purpose, data[1:]).to_bytes())
    else:
        _SIGNED[purpose](data[1:])


def _signed_seeds() -> list[bytes]:
    documents = [
        (0, _vectors("extensions/heads")["heads"][0]["document"]),
        (1, _vectors("extensions/keys")["events"][0]["document"]),
        (2, _vectors("extensions/replay")["document"]),
    ]
    raws = [(which, base64.b64decode(text)) for which, text in documents]
    anew = [bytes([which]) + raw[SIGNED_HEADER_BYTES:] for which, raw in raws]
    whole = [bytes([129 + which]) + raw for which, raw in raws]  # 129 is a multiple of the number of documents
    return [*anew, *whole]


def _decode_statement(data: bytes) -> None:
    """The first byte chooses: envelopes, attestations (signed anew or not), proofs of equivocation."""
    kind, rest = data[:1], data[1:]
    if kind == b"e":
        decode_envelope(rest, payload_type=PAYLOAD_TYPE)
    elif kind == b"s" and rest:
        envelope = sign_envelope(b"\x02" * 32, PAYLOAD_TYPE, rest)
        (decode_acceptance if b"acceptance/" in rest else decode_attestation)(envelope)
    elif kind == b"a":
        decode_attestation(rest)
    else:
        check_equivocation(rest)


def _statement_seeds() -> list[bytes]:
    attestations = _vectors("extensions/attestations")["attestations"]
    return [
        *(kind + case["envelope"].encode() for case in attestations for kind in (b"e", b"a")),
        *(b"s" + case["statement"].encode() for case in attestations),
        *(b"q" + case["proof"].encode() for case in _vectors("extensions/equivocation")["proofs"]),
        b"s" + base64.b64decode(json.loads(_acceptance())["payload"]),
    ]


def _acceptance() -> bytes:
    return sign_acceptance(
        b"\x02" * 32,
        dataset_id=DatasetId(b"\x01" * 32),
        first=BlockRef(0, Multihash.of_sha3_256(b"first")),
        last=BlockRef(3, Multihash.of_sha3_256(b"last")),
        policy=None,
        trust=Trust.SIGNED,
        replayed_steps=0,
        grounds="signed by the dataset's key",
        time=Timestamp(0),
    )


def _decode_schema(data: bytes) -> None:
    """The schema of a hash tree, as the other node of ``locate`` sends it."""
    from odf_protocol.hashing.v1_types import decode_schema, encode_schema

    assert encode_schema(decode_schema(data)) == data


def _schema_seeds() -> list[bytes]:
    from odf_protocol.hashing.v1_types import encode_schema
    from support.extension_vectors import tables

    return [encode_schema(batch.schema) for batch in tables().values()]


def _decode_pack(data: bytes) -> None:
    """The first byte says whether the content is compressed anew, so that mutations get behind the checksum."""
    import zstandard

    if not data:
        return
    body = zstandard.ZstdCompressor(level=1).compress(data[1:]) if data[0] & 1 else data[1:]
    blocks = decode_pack(body)
    body, count = encode_pack(blocks)
    assert decode_pack(body) == blocks[:count]


def _pack_seeds() -> list[bytes]:
    import zstandard

    packs = [
        encode_pack([PackedBlock(raw, b"s" * 64, b"record" * 20) for raw in chain])[0] for chain in _kamu_chains()[:3]
    ]
    packs.append(zstandard.ZstdCompressor().compress(bytes(1 << 26)))  # a little that unpacks to much
    plain = [zstandard.ZstdDecompressor().decompress(pack, max_output_size=1 << 26) for pack in packs[:3]]
    return [*(b"\0" + pack for pack in packs), *(b"\1" + content for content in plain)]


_DECODING = (MalformedError, UnsupportedError)
_JUDGING = (*_DECODING, RejectedError)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("block", _decode_block, _DECODING, _blocks),
        Target("chain", _verify_chain, _JUDGING, _chain_seeds),
        Target("annotate", _annotate, (), _blocks),
        Target("manifest-yaml", _parse_manifests("fuzz.yaml"), (ManifestError,), _yaml_seeds),
        Target("manifest-json", _parse_manifests("fuzz.json"), (ManifestError,), _json_seeds),
        Target("ddl", _parse_ddl, _DECODING, _ddl_seeds),
        Target("identifier", _parse_identifier, _DECODING, _identifier_seeds),
        Target("signed", _decode_signed, _JUDGING, _signed_seeds),
        Target("statement", _decode_statement, _JUDGING, _statement_seeds),
        Target("schema", _decode_schema, _DECODING, _schema_seeds),
        Target("pack", _decode_pack, (MalformedError,), _pack_seeds),
        *FILE_TARGETS,
        *PATTERN_TARGETS,
        *SMART_TARGETS,
        *TEXT_TARGETS,
        Target("state", lambda data: decode_state(data) and None, (CorruptError,), lambda: [_state()]),
    )
}


def _state() -> bytes:
    state: ChainState | None = None
    for raw in _kamu_chains()[0]:
        state, _ = append(state, decode_block(raw, expected_hash=None), strictness=Strictness.FOREIGN)
    assert state is not None
    return encode_state(state)
