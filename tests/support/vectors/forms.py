"""The files of ``spec/vectors``: one ``kind`` each, with cases that are accepted and cases that are rejected."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from odf_protocol.block import decode_block, encode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.multibase import encode_base16, encode_base58btc, encode_base64url
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetPattern, parse_any_ref
from odf_protocol.timestamp import Timestamp
from support.manifests import parse_manifest
from support.vectors.check import Check, Checks, expect, expect_rejection

__all__ = ["FORMS", "check_block"]

Case = Mapping[str, Any]


def check_block(case: Case) -> None:
    """Encode the object to the bytes, decode the bytes to the object, and hash them."""
    raw = bytes.fromhex(case["bytes_hex"])
    manifest = {"kind": "MetadataBlock", "version": case["version"], "content": case["block"]}
    stated = parse_manifest(json.dumps(manifest, ensure_ascii=False), source_name="vector")
    block = decode_block(raw, expected_hash=Multihash.parse(case["hash"]))
    expect(block.event, stated.event)
    encoded = encode_block(
        stated.event,
        system_time=stated.system_time,
        prev_block_hash=stated.prev_block_hash,
        sequence_number=stated.sequence_number,
        version=case["version"],
    )
    expect(encoded.hex(), raw.hex())
    again = encode_block(
        block.event,
        system_time=block.system_time,
        prev_block_hash=block.prev_block_hash,
        sequence_number=block.sequence_number,
        version=block.version,
    )
    expect(again.hex(), raw.hex())


def _blocks(document: Case) -> Checks:
    for case in document["accepted"]:
        yield Check(case["comment"], partial(check_block, case))
    for case in document["rejected"]:
        attempt = partial(decode_block, bytes.fromhex(case["bytes_hex"]), expected_hash=None)
        yield Check(_comment(case), partial(expect_rejection, case["refusal"], attempt))


def _chains(document: Case) -> Checks:
    """Chains are lists of names of blocks, whose bytes are given once."""
    blocks = {name: bytes.fromhex(raw) for name, raw in document["blocks"].items()}
    for case in document["cases"]:
        yield Check(_comment(case), partial(_check_chain, case, [blocks[name] for name in case["chain"]]))


def _check_chain(case: Case, raws: list[bytes]) -> None:
    """The last block is the one in question; it is judged as ours and as another's, one by one and by the verifier."""
    for strictness, is_broken in (
        (Strictness.OWN, "rejected_by" in case or "reported_by" in case),
        (Strictness.FOREIGN, "rejected_by" in case),
    ):
        clause = case.get("rejected_by") or case.get("reported_by")
        state: ChainState | None = None
        for raw in raws[:-1]:
            state, _ = append(state, decode_block(raw, expected_hash=None), strictness=Strictness.FOREIGN)
        last = decode_block(raws[-1], expected_hash=None)
        verifier = ChainVerifier(state, strictness=strictness)
        if is_broken:
            expect_rejection("rejected", partial(append, state, last, strictness=strictness), clause=clause)
            expect_rejection("rejected", partial(verifier.verify, raws[-1:]), clause=clause)
            continue
        _, warnings = append(state, last, strictness=strictness)
        expect(clause in {warning.rule.split()[0] for warning in warnings}, "reported_by" in case)
        expect(verifier.verify(raws[-1:]), [last.hash.digest])
        expect(verifier.warning_count, len(warnings))


def _identifiers(document: Case) -> Checks:
    for case in document["multihashes"]:
        yield Check(f"multihash {case['base16']}", partial(_check_multihash, case))
    for case in document["sha3_256"]:
        found = Multihash.of_sha3_256(bytes.fromhex(case["bytes_hex"]))
        yield Check(f"sha3-256 of {case['bytes_hex']}", partial(expect, str(found), case["multihash"]))
    for case in document["keys"]:
        yield Check(case["did_odf"], partial(_check_key, case))
    parsers: dict[str, Callable[[str], Any]] = {
        "multihash": Multihash.parse,
        "did:odf": DatasetId.parse,
        "did:key": DidKey.parse,
    }
    for case in document["rejected"]:
        attempt = partial(parsers[case["type"]], case["text"])
        yield Check(_comment(case), partial(expect_rejection, case["refusal"], attempt))


def _check_multihash(case: Case) -> None:
    data = bytes.fromhex(case["bytes_hex"])
    value = Multihash.decode(data)
    expect((value.code, value.digest.hex()), (case["code"], case["digest_hex"]))
    expect((value.to_bytes(), str(value), value.short), (data, case["base16"], case["short"]))
    for name, encode in (("base16", encode_base16), ("base58btc", encode_base58btc), ("base64url", encode_base64url)):
        expect(encode(data), case[name])
        expect(Multihash.parse(case[name]), value)
    expect(Multihash.parse("F" + case["base16"][1:].upper()), value)


def _check_key(case: Case) -> None:
    data = bytes.fromhex(case["bytes_hex"])
    for kind, text in ((DatasetId, case["did_odf"]), (DidKey, case["did_key"])):
        value = kind.parse(text)
        expect((value.to_bytes(), str(value)), (data, text))
        expect(kind.decode(data), value)


def _timestamps(document: Case) -> Checks:
    for case in document["accepted"]:
        yield Check(case["text"], partial(_check_timestamp, case))
    for case in document["rejected"]:
        yield Check(_comment(case), partial(expect_rejection, "malformed", partial(Timestamp.parse, case["text"])))


def _check_timestamp(case: Case) -> None:
    value = Timestamp.parse(case["text"])
    expect((value.seconds, value.nanoseconds), (case["seconds"], case["nanoseconds"]))
    expect(str(value), case["canonical"])
    expect(list(value.to_day_of_year()), case["struct"])
    expect(Timestamp.from_day_of_year(*case["struct"]), value)


def _names(document: Case) -> Checks:
    repos = set(document["repos"])

    def parse(text: str) -> Any:
        return parse_any_ref(text, is_repo=lambda repo: repo.text in repos)

    for case in document["accepted"]:
        yield Check(
            f"{case['text']} is a {case['type']}",
            partial(lambda case: expect(type(parse(case["text"])).__name__, case["type"]), case),
        )
    for case in document["equal"]:
        yield Check(
            f"{case[0]} and {case[1]} are one", partial(lambda one, other: expect(parse(one), parse(other)), *case)
        )
    for case in document["rejected"]:
        yield Check(_comment(case), partial(expect_rejection, case["refusal"], partial(parse, case["text"])))
    for case in document["patterns"]:
        yield Check(f"pattern {case['pattern']} and {case['alias']}", partial(_check_pattern, parse, case))


def _check_pattern(parse: Callable[[str], Any], case: Case) -> None:
    expect(DatasetPattern.parse(case["pattern"]).matches(parse(case["alias"])), case["matches"])


def _comment(case: Case) -> str:
    clause = case.get("rejected_by") or case.get("reported_by")
    return f"{clause}: {case['comment']}" if clause else str(case["comment"])


FORMS: Mapping[str, Callable[[Case], Checks]] = {
    "blocks": _blocks,
    "chains": _chains,
    "identifiers": _identifiers,
    "names": _names,
    "timestamps": _timestamps,
}
