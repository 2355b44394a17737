"""One machine at a time: peers, links, requests, replies (GOSSIP-23 to GOSSIP-48)."""

import random
from functools import cache

import pytest

from odf_gossip_protocol import (
    Accept,
    Effect,
    Event,
    Failed,
    GossipMachine,
    GossipSettings,
    Interests,
    Notify,
    Publish,
    Received,
    Reject,
    Replied,
    Respond,
    Send,
    SetInterests,
    SetPinned,
    SetRecord,
    Tick,
    decode_reply,
    decode_request,
    encode_gossip,
)
from odf_gossip_protocol.messages import (
    Compare,
    Feed,
    Follow,
    Hello,
    ItemMessage,
    Items,
    Push,
    Ranges,
    Reply,
    Taken,
    Want,
    Welcome,
)
from odf_gossip_protocol.ranges import IdRange
from odf_protocol.errors import MalformedError
from odf_protocol.peer_addresses import PeerAddress, PeerRecord, sign_peer
from odf_protocol.timestamp import Timestamp
from support.gossip_items import NOON_MS, head, key_of
from support.signing import DATASET_KEY

DAY_MS = 86_400_000
BOOT = PeerAddress("http://20.0.0.1:8080")


def address(number: int, bucket: int | None = None) -> PeerAddress:
    return PeerAddress(
        f"http://30.{number % 200 if bucket is None else bucket}.{number // 200}.{number % 200 + 1}:8080"
    )


@cache
def record(number: int, *where: PeerAddress, age_ms: int = 0) -> PeerRecord:
    time_ms = NOON_MS - age_ms
    return sign_peer(
        key_of(number),
        addresses=where or (address(number),),
        time=Timestamp.from_unix_ms(time_ms),
        expires=Timestamp.from_unix_ms(time_ms + DAY_MS),
    )


class Driver:
    """A machine with a clock that a test moves."""

    def __init__(self, *, allow_private: bool = False, reachable: bool = True, **limits: float) -> None:
        self.settings = GossipSettings(**limits)  # type: ignore[arg-type]
        self.machine = GossipMachine(self.settings, allow_private=allow_private)
        self.source = random.Random(5)
        self.now_ms = NOON_MS
        if reachable:
            self.tell(SetRecord(record(9_999)))

    def tell(self, event: Event) -> list[Effect]:
        return self.machine.handle(event, self.now_ms, self.source)

    def tick(self, rounds: int = 1) -> list[Send]:
        sent = []
        for _ in range(rounds):
            self.now_ms += self.settings.round_ms
            sent += [effect for effect in self.tell(Tick()) if isinstance(effect, Send)]
        return sent

    def ask(self, request: object, bucket: str = "b") -> Reply:
        (first, *_) = self.tell(Received(bucket, request))  # type: ignore[arg-type]
        assert isinstance(first, Respond), first
        return first.reply

    def befriend(self, *numbers: int) -> None:
        """Let peers answer as soon as they are greeted, and become links."""
        for number in numbers:
            self.machine.peers.learn(record(number), "x", self.now_ms)
        for sent in self.tick():
            if isinstance(sent.request, Hello):
                self.welcome(sent)

    def welcome(self, sent: Send, *peers: PeerRecord) -> None:
        known = self.machine.peers.find(sent.address)
        number = next((n for n in range(300) if known is not None and known.node == record(n).node), 0)
        reply = Welcome(
            record=record(number, PeerAddress(sent.address)).raw, linked=True, peers=tuple(one.raw for one in peers)
        )
        for effect in self.tell(Replied(sent.address, sent.request, reply)):
            if isinstance(effect, Send) and isinstance(effect.request, Compare):
                self.tell(Replied(effect.address, effect.request, Ranges()))  # it has what is here


def test_new_link_is_compared_with_at_once() -> None:
    driver = Driver()
    driver.tell(SetPinned((address(0),)))
    (sent,) = driver.tick()
    effects = driver.tell(Replied(sent.address, sent.request, Welcome(record=record(0).raw, linked=True)))
    assert [type(effect.request) for effect in effects if isinstance(effect, Send)] == [Compare]


def test_named_peer_is_greeted_first_and_tells_of_others() -> None:
    driver = Driver()
    driver.tell(SetPinned((address(0),)))
    (sent,) = driver.tick()
    assert (sent.address, type(sent.request)) == (address(0).text, Hello)
    driver.welcome(sent, record(1), record(2))
    assert {effect.address for effect in driver.tick() if isinstance(effect.request, Hello)} == {
        address(1).text,
        address(2).text,
    }


def test_news_goes_to_all_links_at_the_next_round() -> None:
    driver = Driver()
    driver.befriend(1, 2, 3)
    driver.tell(Publish((head(DATASET_KEY, 1),)))
    pushed = [sent for sent in driver.tick() if isinstance(sent.request, Push)]
    assert {sent.address for sent in pushed} == {address(number).text for number in (1, 2, 3)}


def test_contradiction_goes_out_at_once_and_to_everybody() -> None:
    driver = Driver()
    driver.befriend(1, 2)
    driver.ask(Push(items=(ItemMessage.of(head(DATASET_KEY, 1, text="a")),)))
    effects = driver.tell(Received("b", Push(items=(ItemMessage.of(head(DATASET_KEY, 1, text="b")),))))
    pushed = [effect for effect in effects if isinstance(effect, Send)]
    assert {effect.address for effect in pushed} == {address(1).text, address(2).text}
    assert {item.kind for effect in pushed for item in effect.request.items} >= {"equivocation"}  # type: ignore[union-attr]
    assert [effect.item.kind for effect in effects if isinstance(effect, Accept)] == ["equivocation"]


@pytest.mark.parametrize("is_held", [True, False])
def test_older_head_of_a_dataset_of_interest_is_told_and_not_kept_gossip_13(is_held: bool) -> None:
    """Blocks that are held here may contradict it, though no other head does."""
    driver = Driver()
    newer, older = head(DATASET_KEY, 5), head(DATASET_KEY, 3)
    if is_held:
        driver.tell(SetInterests(Interests(frozenset({newer.dataset_id}))))
    driver.tell(Publish((newer,)))

    effects = driver.tell(Received("b", Push(items=(ItemMessage.of(older),))))

    assert [effect.item for effect in effects if isinstance(effect, Notify)] == ([older] if is_held else [])
    assert list(driver.machine.store.iter_items()) == [newer]
    assert driver.tell(Received("b", Push(items=(ItemMessage.of(older),)))) == [Respond(Taken())]


def test_own_head_that_a_newer_one_replaced_is_still_given_to_whoever_asks_gossip_13() -> None:
    driver = Driver()
    newer, older = head(DATASET_KEY, 5), head(DATASET_KEY, 3)
    driver.tell(SetInterests(Interests(frozenset({newer.dataset_id}))))
    driver.tell(Publish((older,)))
    driver.tell(Received("b", Push(items=(ItemMessage.of(newer),))))

    assert driver.ask(Want(ids=(older.id,))) == Items(items=(ItemMessage.of(older),))
    driver.now_ms += 91 * DAY_MS
    driver.tick()
    assert driver.ask(Want(ids=(older.id,))) == Items(items=())


def test_push_without_answer_is_sent_again_a_few_times() -> None:
    driver = Driver(max_failures=99)
    driver.befriend(1)
    driver.tell(Publish((head(DATASET_KEY, 1),)))
    pushes = 0
    for _ in range(12):
        for sent in driver.tick():
            pushes += isinstance(sent.request, Push)
            driver.tell(Failed(sent.address, sent.request))
    assert pushes == driver.settings.push_attempts


def test_peer_that_does_not_answer_is_no_link_any_more() -> None:
    driver = Driver()
    driver.befriend(1)
    assert driver.machine.links.list_out() == [address(1).text]
    for _ in range(driver.settings.max_failures):
        driver.tell(Failed(address(1).text, Hello()))
    assert driver.machine.links.targets() == []


def test_named_peer_is_never_given_up() -> None:
    driver = Driver()
    driver.tell(SetPinned((BOOT,)))
    greeted = 0
    for _ in range(400):
        for sent in driver.tick():
            greeted += sent.address == BOOT.text
            driver.tell(Failed(sent.address, sent.request))
    assert driver.machine.peers.find(BOOT.text) is not None
    assert 400 // driver.settings.max_backoff_rounds <= greeted <= 20


def test_one_network_gets_one_link_and_few_places() -> None:
    driver = Driver()
    for number in range(50):
        driver.machine.peers.learn(record(number, address(number, bucket=7)), f"i{number}", driver.now_ms)
    assert len(driver.machine.peers) == driver.settings.bucket_peers
    driver.befriend(101, 102, 103)
    for sent in driver.tick(3):
        if isinstance(sent.request, Hello):
            driver.welcome(sent)
    out = driver.machine.links.list_out()
    assert len(out) >= 3
    assert sum(one.startswith("http://30.7.") for one in out) <= driver.settings.bucket_links


def test_one_introducer_fills_its_own_places_only() -> None:
    driver = Driver(introduced_peers=5)
    for number in range(60):
        driver.machine.peers.learn(record(number), "liar", driver.now_ms)
    driver.machine.peers.learn(record(150), "other", driver.now_ms)
    assert len(driver.machine.peers) == 6
    assert driver.machine.peers.find(address(150).text) is not None


def test_who_knocks_gets_no_link_of_our_own_choice() -> None:
    driver = Driver()
    welcome = driver.ask(Hello(record=record(1).raw, link=True))
    assert isinstance(welcome, Welcome)
    assert welcome.linked
    driver.machine.links._peers._fresh.clear()  # it is known by its knocking alone
    driver.machine.peers.learn(record(1), "b", driver.now_ms)
    greetings = [sent for sent in driver.tick() if sent.address == address(1).text]
    assert len(greetings) == 1
    assert driver.machine.links.targets() == []
    driver.welcome(greetings[0])
    assert driver.machine.links.targets() == [address(1).text]
    assert driver.machine.links.list_out() == []


def test_knockers_beyond_the_limit_are_told_no() -> None:
    driver = Driver(rate_burst_requests=1_000)
    linked = [driver.ask(Hello(record=record(n).raw, link=True)).linked for n in range(20)]  # type: ignore[union-attr]
    assert linked == [True] * driver.settings.in_links + [False] * (20 - driver.settings.in_links)


def test_private_address_of_a_stranger_is_kept_only_where_it_is_allowed() -> None:
    inside = PeerAddress("http://192.168.0.7:8080")
    for allowed in (False, True):
        driver = Driver(allow_private=allowed)
        driver.ask(Hello(record=record(1, inside).raw, link=True))
        assert (driver.machine.peers.find(inside.text) is not None) == allowed


def test_record_counts_only_for_an_address_that_it_names() -> None:
    """Somebody shows another node's record: that node's place is not touched."""
    driver = Driver()
    peers = driver.machine.peers
    peers.learn(record(1), "a", driver.now_ms)
    peers.learn(record(2), "a", driver.now_ms)
    peers.answered(address(2).text, record(1), driver.now_ms)
    assert peers.find(address(1).text) is not None
    assert peers.find(address(2).text).node == record(2).node  # type: ignore[union-attr]


def test_node_that_moved_is_found_at_its_new_address_alone() -> None:
    driver = Driver()
    peers = driver.machine.peers
    peers.learn(record(1, age_ms=1_000), "a", driver.now_ms)
    peers.learn(record(1, address(77)), "b", driver.now_ms)
    assert [peer.address for peer in peers.iter_peers()] == [address(77)]


def test_record_of_the_past_changes_nothing() -> None:
    driver = Driver()
    peers = driver.machine.peers
    peers.learn(record(1), "a", driver.now_ms)
    peers.learn(record(1, address(77), age_ms=1_000), "b", driver.now_ms)
    peers.learn(record(2, age_ms=DAY_MS), "b", driver.now_ms)
    assert [peer.address for peer in peers.iter_peers()] == [address(1)]


def test_node_does_not_talk_to_itself() -> None:
    driver = Driver()
    driver.tell(SetPinned((BOOT,)))
    (sent,) = driver.tick()
    driver.tell(Replied(sent.address, sent.request, Welcome(record=record(9_999).raw, linked=True)))
    driver.tell(SetPinned((BOOT,)))
    assert driver.tick(100) == []


def test_node_without_address_follows_logs_and_asks_for_no_link() -> None:
    driver = Driver(reachable=False)
    driver.befriend(1)
    sent = driver.tick()
    assert [type(one.request) for one in sent if not isinstance(one.request, Compare)] == [Follow]
    follow = next(one for one in sent if isinstance(one.request, Follow))
    asked = driver.tell(Replied(follow.address, follow.request, Feed(epoch=bytes(16), next=5)))
    assert [type(effect.request) for effect in asked if isinstance(effect, Send)] in ([Compare], [])
    (again,) = [one for one in driver.tick() if isinstance(one.request, Follow)]
    assert again.request == Follow(epoch=bytes(16), after=5)


def test_log_tells_what_came_after_a_place() -> None:
    driver = Driver()
    start = driver.ask(Follow())
    assert isinstance(start, Feed)
    items = [head(key_of(number), 1) for number in range(5)]
    driver.tell(Publish(tuple(items)))
    feed = driver.ask(Follow(epoch=start.epoch, after=start.next))
    assert isinstance(feed, Feed)
    assert [item.raw for item in feed.items] == [item.raw for item in items]
    later = driver.ask(Follow(epoch=start.epoch, after=feed.next))
    assert later == Feed(epoch=start.epoch, next=feed.next)
    assert driver.ask(Follow(epoch=bytes(16), after=0)) == Feed(epoch=start.epoch, next=feed.next)


def test_want_gives_what_is_there() -> None:
    driver = Driver()
    item = head(DATASET_KEY, 1)
    driver.tell(Publish((item,)))
    assert driver.ask(Want(ids=(bytes(32), item.id))) == Items(items=(ItemMessage.of(item),))


def test_two_machines_tell_each_other_everything() -> None:
    here, there = Driver(), Driver()
    here.befriend(1)
    here.tell(Publish(tuple(head(key_of(number), 1) for number in range(60))))
    there.tell(Publish(tuple(head(key_of(number), 1) for number in range(40, 300))))
    waiting = here.tick(8)
    while waiting:
        sent = waiting.pop(0)
        if isinstance(sent.request, Compare | Want | Push):
            (respond, *_) = there.tell(Received(f"b{len(waiting)}", decode_request(encode_gossip(sent.request))))
            assert isinstance(respond, Respond), respond
            reply = decode_reply(encode_gossip(respond.reply))
            more = here.tell(Replied(sent.address, sent.request, reply))
            waiting += [effect for effect in more if isinstance(effect, Send)]
            waiting += here.tick()
            there.now_ms = here.now_ms
        if len(here.machine.store) == len(there.machine.store) == 300:
            break
    assert (len(here.machine.store), len(there.machine.store)) == (300, 300)


def test_reply_to_another_question_costs_the_peer_its_link() -> None:
    driver = Driver()
    driver.befriend(1)
    driver.tell(Replied(address(1).text, Want(ids=()), Taken()))
    assert driver.machine.links.targets() == []
    assert driver.machine.peers.find(address(1).text) is None


def test_answer_about_ranges_that_nobody_asked_for_costs_the_link() -> None:
    driver = Driver()
    driver.befriend(1)
    compares = [one for one in driver.tick(4) if isinstance(one.request, Compare)]
    ranges = (IdRange(upper=bytes(31) + b"\x01", ids=()), IdRange(ids=()))
    driver.tell(Replied(address(1).text, compares[0].request, Ranges(ranges=ranges)))
    assert driver.machine.links.targets() == []


def test_items_that_were_not_asked_for_are_not_taken() -> None:
    driver = Driver()
    driver.befriend(1)
    item = head(DATASET_KEY, 1)
    driver.tell(Replied(address(1).text, Want(ids=(bytes(32),)), Items(items=(ItemMessage.of(item),))))
    assert len(driver.machine.store) == 0


def test_kinds_of_later_versions_are_passed_over() -> None:
    driver = Driver()
    item = head(DATASET_KEY, 1)
    driver.ask(Push(items=(ItemMessage(kind="weather", raw=b"sunny"), ItemMessage.of(item))))
    assert item.id in driver.machine.store


def test_sender_that_asks_too_often_is_rejected_and_others_are_not() -> None:
    driver = Driver(rate_burst_requests=5)
    answers = [type(driver.tell(Received("b", Follow()))[0]) for _ in range(7)]
    assert answers == [Respond] * 5 + [Reject] * 2
    driver.ask(Follow(), bucket="c")
    driver.now_ms += 1_000
    driver.ask(Follow())


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{}", b"[]", b'{"type":"gift"}', b'{"type":"hello","more":1}', b'{"type":"want","ids":["AA=="]}'),
        *(b'{"type":"push"}', b'{"type":"compare","nonce":"","ranges":[]}', b"\xff", b"[" * 100_000, b" " * 600_000),
        encode_gossip(Taken()),
    ],
)
def test_message_that_is_no_request_is_rejected(body: bytes) -> None:
    with pytest.raises(MalformedError):
        decode_request(body)


def test_answers_may_say_more_than_is_known() -> None:
    assert decode_reply(b'{"type":"taken","later":1}') == Taken()
    with pytest.raises(MalformedError):
        decode_reply(encode_gossip(Follow()))
