"""What either side of an exchange may cost the other, before anything it says is believed (EX-11)."""

from typing import Final

from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Messages

MAX_JSON_BYTES: Final = 4 * MIB
"""One JSON message in either direction.  # guess: a full page of datasets or missing objects is below 1 MiB"""
MAX_HEAD_TEXT_BYTES: Final = 128
"""``refs/head``: the text of a SHA3-256 multihash has 69 bytes; room for a newline that others add."""
MAX_SIGNED_HEAD_BYTES: Final = 64 * KIB  # guess: a signature, two identities and a head are below 1 KiB
MAX_SIGNED_KEY_EVENT_BYTES: Final = 1024 + 96
"""Source: KEY-1, SIG-5. A whole log of 1,000 takes 1.5 MB as base64: it fits into one message."""
MAX_ATTESTATION_BYTES: Final = 2 * MIB
"""The largest envelope that ``odf_protocol.dsse`` reads."""
MAX_ATTESTATIONS_BYTES: Final = 16 * MIB
"""What is read of a peer's statements about one dataset.  # guess: thousands of ordinary ones"""
MAX_PROBLEM_TEXT_CHARACTERS: Final = 2_000  # guess: what a person reads of a rejection

PAGE_DATASETS: Final = 1_000
MAX_LISTED_DATASETS: Final = 100_000  # guess: a hundred pages; more than a person reads
PAGE_SEARCHED: Final = 100
"""Datasets of one answer to a search; with all the texts below, escaped, it fits into one message."""
MAX_SEARCH_LOOKS: Final = 1_000
"""Datasets that are looked at closely for one answer.  # guess: tenths of a second"""
MAX_SEARCH_WORDS: Final = 8  # guess
MAX_WAITING_SEARCHES: Final = 8  # guess: as of trees and leaves
MAX_REPORTED_WORDS: Final = 20
"""Keywords, and columns, of a dataset that has the words: those alone in which one occurs."""
MAX_REPORTED_CHARACTERS: Final = 100
"""Of a keyword, a column's name, and a word that is looked for."""
PAGE_ATTESTATIONS: Final = 100
PAGE_ATTESTATION_BYTES: Final = 2 * MIB
"""A page is closed before it grows beyond this: base64 and the largest attestation still fit into one message."""
PAGE_MISSING_OBJECTS: Final = 1_000

# Trees of slices

MAX_TREE_QUERIES: Final = 64
"""Nodes asked about in one request; each answer has up to 16 hashes."""
MAX_TREE_SCHEMA_BYTES: Final = 256 * KIB  # guess: thousands of columns
MAX_TREE_LEAVES: Final = 512 * KIB
"""Of all columns together: 16 MiB of hashes for two billion cells."""
KEPT_TREES_BYTES: Final = 64 * MIB
"""Trees of slices that a server keeps in memory."""
MAX_WAITING_TREES: Final = 8  # guess: whoever would wait for more is better told to ask later
MAX_WAITING_LEAVES: Final = 8  # guess: likewise

# Packs of blocks

PACK_TARGET_BYTES: Final = 8 * MIB
"""A pack is closed when its blocks reach this size; a block that is larger travels alone."""
MAX_PACK_BLOCKS: Final = 20_000  # guess: a thousand blocks per request already hide the round trip
MAX_SIGNATURE_BYTES: Final = 16 * KIB  # guess: Ed25519 needs 64; room for other schemes
MAX_STEP_RECORD_BYTES: Final = 4 * MIB + 4 * KIB
"""The largest that ``odf_protocol.step_record`` reads, with key and signature."""
MAX_PACK_RAW_BYTES: Final = PACK_TARGET_BYTES + MAX_BLOCK_SIZE_BYTES + MAX_SIGNATURE_BYTES + MAX_STEP_RECORD_BYTES + 64
"""A pack after decompression: everything that fits before the target, and one more block with all it may carry."""
MAX_PACK_BYTES: Final = MAX_PACK_RAW_BYTES + MAX_PACK_RAW_BYTES // 128 + 4 * KIB
"""A pack as sent: zstd never grows data by more than 1/128 and some headers (ZSTD_compressBound)."""
MAX_ZSTD_WINDOW_BYTES: Final = 8 * MIB
"""What decoders must support, and so may limit themselves to. Source: RFC 8878 section 3.1.1.1.2."""

# Walks over a peer that serves one block per request

MAX_WALK_BLOCKS: Final = 200_000  # guess: minutes on a fast line; longer chains need packs
MAX_WALK_BYTES: Final = 512 * MIB

# Chains

MAX_PULL_BLOCKS: Final = 1_000_000
"""What a reader takes of one chain at once; it waits in a file of the staging area until it is judged."""
MAX_PULL_BYTES: Final = 1024 * MIB

# Pushes

MAX_PUSH_SESSIONS: Final = 16  # guess
MAX_TOKEN_PUSH_SESSIONS: Final = 8
"""Of one token: nobody alone can have all.  # guess: half"""
MAX_VERIFICATIONS: Final = 2
"""Each may take an engine with its memory.  # guess: as many as a small machine bears"""
MAX_WAITING_VERIFICATIONS: Final = 16  # guess: as many as there may be pushes
MAX_ENDED_PUSHES: Final = 256  # guess: answers that nobody has asked for yet
MAX_PUSH_BLOCKS: Final = 1_000_000
MAX_PUSH_BLOCK_BYTES: Final = 1024 * MIB
PUSH_IDLE_S: Final = 15 * 60.0
"""A push that nobody continues is forgotten after this; uploaded objects wait for the next sweep."""
PUSH_WAIT_S: Final = 20.0
"""How long an answer about a push under verification may be held back; below what proxies tolerate."""

# Connections

MAX_REQUEST_LINE_BYTES: Final = 8 * KIB  # Source: RFC 9112 section 3 asks for at least 8000 octets
MAX_HEADER_FIELD_BYTES: Final = 8 * KIB
MAX_HEADERS: Final = 64
MAX_CONCURRENT_REQUESTS: Final = 128  # guess: beyond this, two cores only add waiting
MAX_ADDRESS_REQUESTS: Final = 96  # guess: three quarters, so that nobody alone can have all
MAX_CONCURRENT_PACKS: Final = 4  # guess: each holds up to 20 MiB
MAX_CONNECTIONS: Final = 512  # guess: half of the usual limit of open files
MAX_ADDRESS_CONNECTIONS: Final = 256  # guess: half of all
KEEPALIVE_S: Final = 75.0  # Source: the default of nginx
PREPARE_S: Final = 600.0
"""A peer that computes an object again is waited for so long: what a step may take by default."""
STALL_S: Final = 30.0
"""Nothing came or went for this long: the other side is taken for dead."""
MESSAGE_S: Final = 60.0
"""One message that is held in memory, from request to last byte; larger ones get more, at the rate below."""
MIN_MESSAGE_RATE_BYTES_PER_S: Final = 20_000  # guess: a pack of the largest size in a quarter of an hour
HELD_BACK_S: Final = STALL_S / 2
"""How long a rate holds back a pack, which is one piece: after twice this, whoever waits gives up."""
MIN_RATE_BYTES_PER_S: Final = 1_000
"""Slower transfers of objects are ended.  # guess: less than a modem"""
MIN_SET_RATE_BYTES_PER_S: Final = 10_000
"""Lower rates that somebody sets are taken as this one: several transfers may share it, each above the bound before."""
RATE_WINDOW_S: Final = 60.0
MAX_REDIRECTS: Final = 3
MAX_PARALLEL_TRANSFERS: Final = 64
"""Objects that a client moves at once.  # guess: half of what a server of ours takes from everybody"""


def message_limit_s(limit_bytes: int, message_s: float = MESSAGE_S) -> float:
    """Give how long a message of up to ``limit_bytes`` may take, with ``message_s`` for a small one."""
    return message_s + limit_bytes / MIN_MESSAGE_RATE_BYTES_PER_S
