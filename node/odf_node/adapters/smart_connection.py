"""Connections of the client's side of the Smart Transfer Protocol (SMART-1)."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.smart_socket import CLOSE_S, Conversation, Role
from odf_node.ports.peer_client import ObjectKind
from odf_node.ports.peer_errors import PeerLiedError, PeerUnavailableError
from odf_protocol.errors import OdfError, RejectedError, UnavailableError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import message_limit_s
from odf_protocol.smart_transfer.limits import MAX_MESSAGE_BYTES
from odf_protocol.smart_transfer.messages import ObjectFile, ObjectType

VERSION_HEADER: Final = "x-odf-smtp-version"
VERSION: Final = "1"

OBJECT_TYPES: Final[Mapping[ObjectKind, ObjectType]] = {
    ObjectKind.DATA: "DataSlice",
    ObjectKind.CHECKPOINT: "Checkpoint",
}


async def open_conversation(stack: AsyncExitStack, client: HttpClient, url: URL, role: Role) -> Conversation:
    """Connect, and put a role on the connection; leaving the stack closes it.

    Raises:
        OdfError: As ``HttpClient.open_socket``.
    """
    socket = await stack.enter_async_context(
        client.open_socket(url, headers={VERSION_HEADER: VERSION}, max_message_bytes=MAX_MESSAGE_BYTES, close_s=CLOSE_S)
    )
    rate = client.settings.rate
    conversation = Conversation(role, socket, send_s=message_limit_s, send_rate=rate, receive_rate=rate)
    stack.push_async_callback(conversation.stop)
    return conversation


def object_file_of(item: WantedObject) -> ObjectFile:
    """Name an object in a message."""
    return ObjectFile(object_type=OBJECT_TYPES[item.kind], physical_hash=str(item.hash), size=item.size_bytes)


def name_peer(url: URL, error: OdfError) -> OdfError:
    """Say whose failure it is."""
    if isinstance(error, UnavailableError):
        return PeerUnavailableError(str(url), str(error))
    if isinstance(error, RejectedError):
        return PeerLiedError(str(url), error.rule, expected=error.expected, found=error.found)
    return error
