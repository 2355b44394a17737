"""Pushing by hand to a daemon: each request of the exchange as it is."""

import json
import urllib.error
import urllib.request
from typing import Any

from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.multihash import Multihash
from support.daemons import Daemon
from support.exchange_nodes import TOKEN, Chain

PUSHES = "/_odf/v1/pushes"


def ask(node: Daemon, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send one request with the token that tests know; give status and body."""
    request = urllib.request.Request(node.url + path, data=body, method=method)
    request.add_header("Authorization", f"Bearer {TOKEN}")
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=240) as answer:
            return int(answer.status), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def begin_push(node: Daemon, chain: Chain) -> tuple[int, Any]:
    """Begin a push and send its blocks; give what the last answer says."""
    head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
    asked = {"dataset_id": str(chain.id), "name": chain.name, "head": head, "signed_head": None}
    status, answer = ask(node, "POST", PUSHES, json.dumps(asked).encode())
    if status != 201:
        return status, json.loads(answer)
    body, _ = encode_pack(PackedBlock(block.raw) for block in chain.blocks)
    status, answer = ask(node, "POST", f"{PUSHES}/{json.loads(answer)['push_id']}/blocks?after=-1", body)
    return status, json.loads(answer)


def upload(node: Daemon, push_id: str, content: bytes) -> tuple[int, bytes]:
    """Send one object of a push."""
    return ask(node, "PUT", f"{PUSHES}/{push_id}/objects/{Multihash.of_sha3_256(content)}", content)
