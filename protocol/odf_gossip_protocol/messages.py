"""Messages between two gossiping nodes: one request, one reply, both JSON, both bounded.

=============  ==========  ====================================================================
request        reply       means
=============  ==========  ====================================================================
``hello``      ``welcome``  here I am, send to me if you like; whom do you know?
``push``       ``taken``    these items are new
``compare``    ``ranges``   this is what I have (fingerprints); where do we differ?
``want``       ``items``    give me these
``follow``     ``feed``     what came to you after this place in your log?
=============  ==========  ====================================================================

Source: clauses GOSSIP-23 to GOSSIP-25 in ``spec/plug-ins/gossip.md``.
"""

from typing import Annotated, Any, Final

import msgspec

from odf_gossip_protocol.item import MAX_ITEM_BYTES, Item, ItemKind, item_id
from odf_gossip_protocol.ranges import MAX_RANGES, NONCE_BYTES, IdRange, ItemId
from odf_protocol.errors import MalformedError
from odf_protocol.peer_addresses import MAX_PEER_RECORD_BYTES

MAX_MESSAGE_BYTES: Final = 512 * 1024
"""The largest item in base64 with as much again beside it."""
MAX_MESSAGE_ITEMS: Final = 256
MAX_RECORDS: Final = 16

_KINDS: Final = {kind.value: kind for kind in ItemKind}
_Record = Annotated[bytes, msgspec.Meta(min_length=97, max_length=MAX_PEER_RECORD_BYTES + 96)]
_Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
_Records = Annotated[tuple[_Record, ...], msgspec.Meta(max_length=MAX_RECORDS)]
_Position = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Part of a request: what is not understood must not be passed over."""


class ItemMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item as it travels; a kind that is not known is passed over."""

    kind: Annotated[str, msgspec.Meta(max_length=32)]
    raw: Annotated[bytes, msgspec.Meta(max_length=MAX_ITEM_BYTES)]

    @classmethod
    def of(cls, item: Item) -> "ItemMessage":
        """Write an item."""
        return cls(kind=item.kind.value, raw=item.raw)

    def find_kind(self) -> ItemKind | None:
        """Return the kind, None where it is one of a later version."""
        return _KINDS.get(self.kind)

    def find_id(self) -> bytes | None:
        """Return the item's id, None where the kind is not known."""
        kind = self.find_kind()
        return None if kind is None else item_id(kind, self.raw)


_ItemMessages = Annotated[tuple[ItemMessage, ...], msgspec.Meta(max_length=MAX_MESSAGE_ITEMS)]


_Ranges = Annotated[tuple[IdRange, ...], msgspec.Meta(max_length=MAX_RANGES)]


class Hello(_Strict, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    """A greeting.

    ``record`` is the sender's own, absent where it cannot be reached; ``link`` asks to be sent to, ``peers`` asks whom
    the other side knows.
    """

    record: _Record | None = None
    link: bool = False
    peers: bool = False


class Push(_Strict, frozen=True, kw_only=True, tag_field="type", tag="push"):
    """Items that the receiver may not have yet."""

    items: _ItemMessages


class Compare(_Strict, frozen=True, kw_only=True, tag_field="type", tag="compare"):
    """A step of a reconciliation."""

    nonce: _Nonce
    ranges: _Ranges


class Want(_Strict, frozen=True, kw_only=True, tag_field="type", tag="want"):
    """Ids of items that are asked for."""

    ids: Annotated[tuple[ItemId, ...], msgspec.Meta(max_length=MAX_MESSAGE_ITEMS)]


class Follow(_Strict, frozen=True, kw_only=True, tag_field="type", tag="follow"):
    """What arrived after ``after`` in the log ``epoch``; without an epoch, only where the log ends now."""

    epoch: _Nonce | None = None
    after: _Position = 0


class Welcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="welcome"):
    """The answer to a greeting: the answerer's record, whether it will send, and some peers it knows."""

    record: _Record | None = None
    linked: bool = False
    peers: _Records = ()


class Taken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="taken"):
    """A push was read; nothing is said about what became of it."""


class Ranges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="ranges"):
    """Where the answerer differs; empty where it does not."""

    ranges: _Ranges = ()


class Items(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="items"):
    """Items that were asked for, as far as they are there and fit."""

    items: _ItemMessages = ()


class Feed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="feed"):
    """What arrived, oldest first, and the place after it. Another epoch than the one asked for: the log began anew."""

    epoch: _Nonce
    next: _Position
    items: _ItemMessages = ()


Request = Hello | Push | Compare | Want | Follow
Reply = Welcome | Taken | Ranges | Items | Feed

_REQUESTS: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(Request)
_REPLIES: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(Reply)


def encode_gossip(message: Request | Reply) -> bytes:
    """Write a message."""
    return msgspec.json.encode(message)


def decode_request(body: bytes) -> Request:
    """Read a request of a stranger.

    Raises:
        MalformedError: Too large, or no request.
    """
    request: Request = _decode(body, _REQUESTS, "gossip request")
    return request


def decode_reply(body: bytes) -> Reply:
    """Read a reply of a stranger.

    Raises:
        MalformedError: Too large, or no reply.
    """
    reply: Reply = _decode(body, _REPLIES, "gossip reply")
    return reply


def _decode(body: bytes, decoder: msgspec.json.Decoder[Any], what: str) -> Any:
    if len(body) > MAX_MESSAGE_BYTES:
        raise MalformedError(what, expected=f"at most {MAX_MESSAGE_BYTES} bytes", found=len(body))
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(what, expected="a message of the gossip protocol", found=str(error)) from error
