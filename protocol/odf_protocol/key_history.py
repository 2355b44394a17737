"""The keys that have spoken for a dataset: who may sign which block, head and event.

A dataset's identity stays what it was, the key it began with. That key speaks for blocks from number 0 on; each
rotation names the next key and the block from which on that one speaks. A recovery, signed by a key that was made in
advance and kept offline, ends a stolen key's time: it says from which block on the stolen key is not believed by itself
(the *window*), and which history is kept.

Source: clauses KEY-2 to KEY-14 in ``spec/extensions/keys.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.key_events import KeyChange, KeyEvent, decode_key_event
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import verify_block_signature

_History = TypeVar("_History", bound="KeyHistory")

MAX_KEY_EVENTS: Final = 1000
"""Source: KEY-8.  # guess: a change a month for eighty years"""


@dataclass(frozen=True, slots=True)
class KeyPeriod:
    """A key and the first block it speaks for."""

    key: DidKey
    first_sequence_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A stolen key's end.

    Attributes:
        index: Of the event in the log.
        stolen_keys: Which keys are not believed any more: all that spoke for the window or right up to it.
        stolen_from: First block of the window.
        first_sequence_number: First block after the window: the next key's.
        keeps: Hash of the block before that one, in the history that goes on.
    """

    index: int
    stolen_keys: tuple[DidKey, ...]
    stolen_from: int
    first_sequence_number: int
    keeps: Multihash

    @property
    def window(self) -> range:
        """Numbers of the blocks that are kept though a stolen key signed them; empty where there are none."""
        return range(self.stolen_from, self.first_sequence_number)


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The keys that have spoken for a dataset, oldest first; made by ``start`` and ``extend``.

    Attributes:
        dataset_id: Whose keys.
        periods: The first is the dataset's own key from block 0.
        events: The log in force.
        recovery_keys: Those that were named, the last one in force.
        recoveries: Stolen keys, in the order in which they were taken back.
    """

    dataset_id: DatasetId
    periods: tuple[KeyPeriod, ...]
    events: tuple[KeyEvent, ...] = ()
    recovery_keys: tuple[DidKey, ...] = ()
    recoveries: tuple[Recovery, ...] = ()

    @classmethod
    def start(cls, dataset_id: DatasetId) -> Self:
        """Return the history of a dataset that has never changed its key."""
        return cls(dataset_id, (KeyPeriod(DidKey(dataset_id.public_key), 0),))

    @classmethod
    def fold(cls, dataset_id: DatasetId, raws: Iterable[bytes]) -> Self:
        """Take the events of a whole log, in order.

        Raises:
            MalformedError, RejectedError: As ``extend``.
        """
        history = cls.start(dataset_id)
        for raw in raws:
            history = history.extend(raw)
        return history

    @property
    def current_key(self) -> DidKey:
        """Who may sign the next head and the next event."""
        return self.periods[-1].key

    @property
    def recovery_key(self) -> DidKey | None:
        """Who may take the dataset back; None: nobody."""
        return self.recovery_keys[-1] if self.recovery_keys else None

    @property
    def last_event(self) -> Multihash | None:
        """Hash of the newest event's payload; None before the first."""
        return self.events[-1].hash if self.events else None

    def key_at(self, sequence_number: int) -> DidKey:
        """Return the key that speaks for a block (KEY-5)."""
        return next(p.key for p in reversed(self.periods) if p.first_sequence_number <= sequence_number)

    def find_end(self, key: DidKey) -> int | None:
        """Return the first block that a key of the log does not speak for any more; None while it is in force.

        Raises:
            KeyError: The key is not in the log.
        """
        place = next((n for n, period in enumerate(self.periods) if period.key == key), None)
        if place is None:
            raise KeyError(key)
        following = self.periods[place + 1 :]
        return following[0].first_sequence_number if following else None

    def speaks(self, key: DidKey, sequence_number: int) -> bool:
        """Say whether a key may vouch for a block as the head: it or a later block is its own (KEY-5)."""
        try:
            end = self.find_end(key)
        except KeyError:
            return False
        return end is None or sequence_number < end

    def find_theft(self, key: DidKey) -> Recovery | None:
        """Return the recovery that took the dataset back from a key, None where the key was not declared stolen.

        Of several, the one that reaches back furthest.
        """
        thefts = [each for each in self.recoveries if key in each.stolen_keys]
        return min(thefts, key=lambda each: each.stolen_from) if thefts else None

    def require_head(self, signer: DidKey, sequence_number: int, block_hash: Multihash) -> None:
        """Check that a key may vouch for a block as the head (KEY-5, KEY-11, KEY-12).

        Raises:
            RejectedError: It may not.
        """
        if not self.speaks(signer, sequence_number):
            rule = "KEY-5 head-is-by-the-key-in-force" if self.events else "HEAD-4 signed-by-the-dataset-key"
            expected = self.key_at(sequence_number)
            raise RejectedError(rule, sequence_number=sequence_number, expected=expected, found=signer)
        self.require_kept(sequence_number, block_hash)
        for theft in self.recoveries:
            if signer in theft.stolen_keys and sequence_number in theft.window[:-1]:
                raise RejectedError(
                    "KEY-11 stolen-key-vouches-for-nothing",
                    sequence_number=sequence_number,
                    expected=f"a head below block {theft.stolen_from}, or by a later key",
                    found=signer,
                )

    def require_kept(self, sequence_number: int, block_hash: Multihash) -> None:
        """Check that a block is not one of a history that the owner gave up in a recovery (KEY-12).

        Raises:
            RejectedError: It is.
        """
        for each in self.recoveries:
            if sequence_number == each.first_sequence_number - 1 and block_hash != each.keeps:
                raise RejectedError(
                    "KEY-12 history-is-the-kept-one",
                    sequence_number=sequence_number,
                    expected=each.keeps,
                    found=block_hash,
                )

    def require_block(self, signature: bytes, sequence_number: int, block_hash: Multihash) -> None:
        """Check a block's detached signature by the key in force at the block (KEY-5).

        Raises:
            RejectedError: Not by that key; where another key of the log signed, the rule says so.
        """
        key = self.key_at(sequence_number)
        try:
            verify_block_signature(signature, self.dataset_id, sequence_number, block_hash, public_key=key.public_key)
        except RejectedError:
            found = self.find_signer(signature, sequence_number, block_hash)
            if found is None:
                raise
            raise RejectedError(
                "KEY-5 block-is-by-the-key-in-force", sequence_number=sequence_number, expected=key, found=found
            ) from None

    def excuses(self, signer: DidKey, position: int, *, in_key_log: bool) -> bool:
        """Say whether two statements by one key at one position do not speak against the dataset (KEY-13).

        They do not where the key did not speak there, or was stolen by then.

        Args:
            signer: Who contradicted itself.
            position: Block number, or index in the key log.
            in_key_log: Which of them.
        """
        theft = self.find_theft(signer)
        if not in_key_log:
            return not self.speaks(signer, position) or (theft is not None and position >= theft.stolen_from)
        return theft is not None or signer not in self._entitled_at(position)

    def extend(self, raw: bytes) -> Self:
        """Take the next event of the log.

        Args:
            raw: A signed key event, untrusted.

        Raises:
            MalformedError: Not a signed key event.
            RejectedError: Not the next event of this log, or not signed by who is entitled to it.
        """
        return self.extend_by(decode_key_event(raw))

    def extend_by(self, event: KeyEvent) -> Self:
        """Take the next event, decoded.

        Raises:
            RejectedError: As ``extend``.
        """
        index = len(self.events)
        if event.dataset_id != self.dataset_id:
            raise RejectedError("KEY-2 event-of-this-dataset", expected=self.dataset_id, found=event.dataset_id)
        if index >= MAX_KEY_EVENTS:
            raise RejectedError("KEY-8 events-in-a-log", expected=f"at most {MAX_KEY_EVENTS}", found=index + 1)
        if (event.index, event.previous) != (index, self.last_event):
            expected, found = f"{index} after {self.last_event}", f"{event.index} after {event.previous}"
            raise RejectedError("KEY-3 events-link", expected=expected, found=found)
        self._require_signer(event)
        used = {period.key for period in self.periods} | set(self.recovery_keys)
        named = event.named_keys
        if used & set(named) or len(set(named)) < len(named):
            raise RejectedError("KEY-6 keys-do-not-return", found=", ".join(map(str, named)))
        extended = replace(self, events=(*self.events, event))
        if event.recovery_key is not None:
            extended = replace(extended, recovery_keys=(*self.recovery_keys, event.recovery_key))
        return _with_period(extended, event, self.periods[-1])

    def up_to(self, count: int) -> "KeyHistory":
        """Return the history as it was after the first ``count`` events."""
        history = KeyHistory.start(self.dataset_id)
        for event in self.events[:count]:
            history = history.extend_by(event)
        return history

    def _require_signer(self, event: KeyEvent) -> None:
        match event.change:
            case KeyChange.ROTATION:
                rule, expected = "KEY-4 signed-by-the-key-in-force", self.current_key
            case KeyChange.RECOVERY_KEY if self.recovery_key is None:
                rule, expected = "KEY-4 signed-by-the-key-in-force", self.current_key
            case _:
                if self.recovery_key is None:
                    raise RejectedError("KEY-9 recovery-key-was-named-before", expected="a recovery key", found="none")
                rule, expected = "KEY-9 signed-by-the-recovery-key", self.recovery_key
        if event.signer != expected:
            raise RejectedError(rule, expected=expected, found=event.signer)

    def _entitled_at(self, index: int) -> set[DidKey]:
        if index > len(self.events):
            return set()
        before = self.up_to(index)
        return {before.current_key, *before.recovery_keys[-1:]}

    def find_signer(self, signature: bytes, sequence_number: int, block_hash: Multihash) -> DidKey | None:
        """Return which key of the log made a block's signature, whether it may or not; None where none did."""
        for period in self.periods[-_TRIED:]:
            try:
                verify_block_signature(
                    signature, self.dataset_id, sequence_number, block_hash, public_key=period.key.public_key
                )
            except OdfError:
                continue
            return period.key
        return None


def _with_period(history: _History, event: KeyEvent, newest: KeyPeriod) -> _History:
    """Let the event's new key speak, if there is one."""
    first = event.first_sequence_number
    if event.new_key is None or first is None:
        return history
    if first < max(newest.first_sequence_number, 1):
        expected = f"at least {max(newest.first_sequence_number, 1)}"
        raise RejectedError("KEY-5 periods-ascend", expected=expected, found=first)
    extended = replace(history, periods=(*history.periods, KeyPeriod(event.new_key, first)))
    if event.stolen_from is None or event.keeps is None:
        return extended
    after = history.recoveries[-1].first_sequence_number if history.recoveries else 0
    if not after <= event.stolen_from <= first:
        raise RejectedError(
            "KEY-10 window-is-after-the-last-one", expected=f"{after} to {first}", found=event.stolen_from
        )
    ends = [period.first_sequence_number for period in history.periods[1:]]
    stolen = [period.key for period, end in zip(history.periods, ends, strict=False) if end >= event.stolen_from]
    recovery = Recovery(
        index=event.index,
        stolen_keys=(*stolen, newest.key),
        stolen_from=event.stolen_from,
        first_sequence_number=first,
        keeps=event.keeps,
    )
    return replace(extended, recoveries=(*history.recoveries, recovery))


_TRIED: Final = 16
"""Keys that a rejected signature is compared with, to say whose it is.  # guess: a rejection stays cheap"""
