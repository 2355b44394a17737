"""Why a conversation does not go on, in the words of the protocol (SMART-3)."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from odf_smart_protocol.limits import MAX_TEXT_CHARACTERS

HashText = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARACTERS)]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What every message is: unknown fields are passed over."""


class Empty(Message, frozen=True, kw_only=True):
    """``{}``: go on, or done."""


class InvalidInterval(Message, frozen=True, kw_only=True):
    """``tail`` is no block of the chain that ends in ``head``: histories differ, or the asker is ahead."""

    head: HashText
    tail: HashText


class InvalidHead(Message, frozen=True, kw_only=True):
    """The head is not what the pusher said. ``actual_head`` is what it said, ``expected_head`` what is there."""

    actual_head: HashText | None = None
    expected_head: HashText | None = None


class Internal(Message, frozen=True, kw_only=True):
    """The other side failed."""

    phase: Any = None
    error_message: str = ""


class RefCollision(Message, frozen=True, kw_only=True):
    """The dataset is there under another name."""

    dataset_id: Text


class NameCollision(Message, frozen=True, kw_only=True):
    """Another dataset has the name."""

    dataset_alias: Text


class TransferProblem(msgspec.Struct, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Why not: exactly one of these, or something that we do not know."""

    invalid_interval: InvalidInterval | UnsetType = UNSET
    invalid_head: InvalidHead | UnsetType = UNSET
    seed_block_overwrite_restricted: Empty | UnsetType = UNSET
    ref_collision: RefCollision | UnsetType = UNSET
    name_collision: NameCollision | UnsetType = UNSET
    internal: Internal | UnsetType = UNSET

    def explain(self) -> str:
        """Say it to people."""
        if self.invalid_interval is not UNSET:
            return f"it has no block {self.invalid_interval.tail}; its head is {self.invalid_interval.head}"
        if self.invalid_head is not UNSET:
            return f"its head is {self.invalid_head.expected_head}, not {self.invalid_head.actual_head}"
        if self.seed_block_overwrite_restricted is not UNSET:
            return "it has another dataset of this name, and a first block is never replaced"
        if self.ref_collision is not UNSET:
            return f"it has {self.ref_collision.dataset_id} under another name"
        if self.name_collision is not UNSET:
            return f"it has another dataset called {self.name_collision.dataset_alias}"
        if self.internal is not UNSET:
            return self.internal.error_message[:MAX_TEXT_CHARACTERS] or "it failed"
        return "it says no, in words that this program does not know"
