"""The four roles of the Smart Transfer Protocol, without a network (SMART-5 to SMART-10)."""

import json
from typing import Any

import pytest

from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnavailableError
from odf_protocol.multihash import Multihash
from odf_protocol.smart_transfer.conversation import (
    Close,
    Closed,
    Ended,
    Failed,
    Opened,
    Received,
    Refused,
    Send,
    TimePassed,
)
from odf_protocol.smart_transfer.limits import ANSWER_S, IDLE_S, MAX_OBJECTS_PER_MESSAGE
from odf_protocol.smart_transfer.messages import (
    Answer,
    BlocksBatch,
    BlocksResponse,
    ObjectFile,
    ObjectsPullRequest,
    ObjectsPullResponse,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PullRequest,
    PullResponse,
    PullStrategy,
    PushBlocks,
    PushRequest,
    PushStrategies,
    PushStrategy,
    TransferPlan,
    TransferUrl,
    decode_message,
    encode_message,
)
from odf_protocol.smart_transfer.problems import Empty, InvalidHead, InvalidInterval, NameCollision, Problem
from odf_protocol.smart_transfer.pull_client import FetchBlocks, Finish, Locate, Located, Planned, PullClient
from odf_protocol.smart_transfer.pull_server import (
    LocateObjects,
    NotPrepared,
    ObjectsLocated,
    Prepare,
    Prepared,
    PullServer,
)
from odf_protocol.smart_transfer.push_client import PushClient, Upload, Uploaded, UploadsDone
from odf_protocol.smart_transfer.push_server import (
    Agreed,
    Commit,
    Declined,
    Judge,
    PlanUploads,
    PushServer,
    TakeBlocks,
    UploadsPlanned,
)
from support.smart_recordings import PULLS, PUSHES, Recorded, read_recordings

HASH = Multihash.of_sha3_256(b"a")
OBJECT = ObjectFile(object_type="DataSlice", physical_hash=str(HASH), size=1)
URL = TransferUrl(url="http://host/data/x", headers=())
PLAN = TransferPlan(num_blocks=1, num_objects=1, num_records=1, bytes_in_raw_blocks=1, bytes_in_raw_objects=1)
BATCH = BlocksBatch.of(b"payload", 1)
OK = Received(b'{"Ok":{}}')
NOTHING = Received(b"{}")


def sent(effects: tuple[Any, ...]) -> list[bytes]:
    return [effect.text for effect in effects if isinstance(effect, Send)]


def failure(effects: tuple[Any, ...]) -> OdfError:
    (failed,) = [effect for effect in effects if isinstance(effect, Failed)]
    return failed.error


# Against recordings


def replay_pull(recorded: Recorded) -> list[bytes]:
    """Let our client hold the recorded conversation with the recorded server."""
    said = recorded.texts("client")
    first = decode_message(said[0], PullRequest)
    asked = decode_message(said[2], ObjectsPullRequest).object_files if len(said) > 2 else ()
    client = PullClient(begin_after=None if first.begin_after is None else Multihash.parse(first.begin_after))
    answers = iter(recorded.texts("server"))
    texts = sent(client.handle(Opened(), 0))
    effects = client.handle(Received(next(answers)), 0)
    for event in (FetchBlocks(), Locate(asked)) if asked else ():
        texts += sent(client.handle(event, 0))
        effects = client.handle(Received(next(answers)), 0)
    assert isinstance(effects[0], Located if asked else Planned)
    assert client.handle(Finish(), 0) == (Close(1000, "Client pull flow succeeded"), Ended())
    assert next(answers, None) is None
    return texts


@pytest.mark.parametrize("name", PULLS)
def test_our_puller_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    assert replay_pull(recorded) == recorded.texts("client")


@pytest.mark.parametrize("name", PULLS)
def test_our_server_of_pulls_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    server, texts = PullServer(0), list[bytes]()
    answers = recorded.texts("server")
    for text in recorded.texts("client"):
        (effect,) = server.handle(Received(text), 0)
        match effect:
            case Prepare():
                plan = decode_message(answers[0], PullResponse).ok
                assert plan
                batch = decode_message(answers[1], BlocksResponse).blocks if len(answers) > 1 else None
                texts += sent(server.handle(Prepared(plan.transfer_plan, batch), 0))
            case LocateObjects():
                strategies = decode_message(answers[2], ObjectsPullResponse).object_transfer_strategies
                texts += sent(server.handle(ObjectsLocated(strategies), 0))
            case Send(text):
                texts.append(text)
    assert texts == answers
    assert server.handle(Closed(1000, "Client pull flow succeeded"), 0) == (Ended(),)


@pytest.mark.parametrize("name", PUSHES)
def test_our_pusher_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    said, texts = recorded.texts("client"), list[bytes]()
    client = PushClient(
        decode_message(said[0], PushRequest),
        decode_message(said[1], PushBlocks).new_blocks,
        decode_message(said[2], ObjectsPushRequest).object_files,
    )
    answers = iter(recorded.texts("server"))
    effects = client.handle(Opened(), 0)
    while not isinstance(effects[-1], Ended):
        texts += sent(effects)
        if isinstance(effects[0], Upload):
            assert {item.push_strategy for item in effects[0].strategies} <= {"HttpUpload"}
            effects = client.handle(UploadsDone(), 0)
        else:
            effects = client.handle(Received(next(answers)), 0)
    assert texts == said
    assert effects == (Close(1000, "Client push flow succeeded"), Ended())


@pytest.mark.parametrize("name", PUSHES)
def test_our_server_of_pushes_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    server, texts, answers = PushServer(0), list[bytes](), recorded.texts("server")
    for text in recorded.texts("client"):
        for effect in server.handle(Received(text), 0):
            match effect:
                case PlanUploads():
                    plan = decode_message(answers[2], ObjectsPushResponse).ok
                    assert plan
                    texts += sent(server.handle(UploadsPlanned(plan.object_transfer_strategies), 0))
                case Judge() | TakeBlocks() | Commit():
                    texts += sent(server.handle(Agreed(), 0))
    assert texts == answers


# The puller


def planned_client() -> PullClient:
    client = PullClient(begin_after=None)
    client.handle(Opened(), 0)
    return client


def located_client(*objects: ObjectFile) -> PullClient:
    client = planned_client()
    client.handle(Received(encode_message(PullResponse(ok={"transfer_plan": PLAN}))), 0)
    client.handle(FetchBlocks(), 0)
    client.handle(Received(encode_message(BlocksResponse(blocks=BATCH))), 0)
    client.handle(Locate(objects), 0)
    return client


def test_puller_hears_why_there_is_no_plan() -> None:
    problem = Problem(invalid_interval=InvalidInterval(head=str(HASH), tail=str(HASH)))
    close, refused = planned_client().handle(Received(encode_message(PullResponse(err=problem))), 0)
    assert close == Close(1000, "")
    assert refused == Refused(problem)


def test_puller_reads_a_failure_from_the_close_frame() -> None:
    reason = '{"Err":{"Internal":{"phase":{"Pull":"InitialRequest"},"error_message":"Internal error"}}}'
    _, refused = planned_client().handle(Closed(1011, reason), 0)
    assert isinstance(refused, Refused)
    assert refused.problem.explain() == "Internal error"


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param(TimePassed(), UnavailableError, id="no-answer"),
        pytest.param(Closed(None), UnavailableError, id="line-broke"),
        pytest.param(Closed(1000), UnavailableError, id="closed-without-an-answer"),
        pytest.param(Closed(1011, "no json"), MalformedError, id="closed-without-a-reason"),
        pytest.param(Received(b"{}"), MalformedError, id="no-plan"),
        pytest.param(Received(b'{"Ok":null}'), MalformedError, id="empty-plan"),
    ],
)
def test_puller_without_a_plan_ends(event: Any, error: type[OdfError]) -> None:
    client = planned_client()
    assert isinstance(failure(client.handle(event, 0)), error)
    assert client.deadline_s is None
    assert client.handle(event, 0) == ()


def test_puller_waits_for_each_answer_as_long_as_is_said() -> None:
    client = PullClient(begin_after=None)
    assert client.deadline_s is None
    client.handle(Opened(), 5.0)
    assert client.deadline_s == 5.0 + ANSWER_S


def test_puller_takes_no_message_out_of_turn() -> None:
    client = planned_client()
    client.handle(Received(encode_message(PullResponse(ok={"transfer_plan": PLAN}))), 0)
    assert isinstance(failure(client.handle(Received(b'{"blocks":{}}'), 0)), RejectedError)


@pytest.mark.parametrize(
    "answered",
    [
        pytest.param([], id="none"),
        pytest.param([OBJECT, OBJECT], id="twice"),
        pytest.param([ObjectFile(object_type="DataSlice", physical_hash=str(Multihash.of_sha3_256(b"b")), size=1)],
                     id="another"),
    ],
)  # fmt: skip
def test_puller_takes_no_address_that_it_did_not_ask_for(answered: list[ObjectFile]) -> None:
    strategies = tuple(
        PullStrategy(object_file=item, pull_strategy="HttpDownload", download_from=URL) for item in answered
    )
    answer = encode_message(ObjectsPullResponse(object_transfer_strategies=strategies))
    assert "SMART-7" in str(failure(located_client(OBJECT).handle(Received(answer), 0)))


# Who is pulled from


def test_server_of_pulls_says_that_it_does_not_know_the_block() -> None:
    server = PullServer(0)
    server.handle(Received(b'{"begin_after":null,"stop_at":null,"force_update_if_diverged":false}'), 0)
    problem = Problem(invalid_interval=InvalidInterval(head=str(HASH), tail=str(HASH)))
    text, ended = server.handle(NotPrepared(problem), 0)
    assert text == Send(f'{{"Err":{{"InvalidInterval":{{"head":"{HASH}","tail":"{HASH}"}}}}}}'.encode())
    assert ended == Ended()


def test_server_of_pulls_ends_what_is_idle() -> None:
    server = PullServer(10.0)
    assert server.deadline_s == 10.0 + IDLE_S
    assert isinstance(failure(server.handle(TimePassed(), 2_000.0)), UnavailableError)


def test_server_of_pulls_that_fails_says_so_while_it_can() -> None:
    server = PullServer(0)
    server.handle(Received(b'{"force_update_if_diverged":false}'), 0)
    text, _ = server.handle(Failed(UnavailableError("the disk is gone")), 0)
    problem = decode_message(text.text, PullResponse).problem
    assert problem is not None
    assert problem.explain() == "the disk is gone"


def test_server_of_pulls_closes_when_no_answer_can_say_what_is_wrong() -> None:
    server = PullServer(0)
    server.handle(Received(b'{"force_update_if_diverged":false}'), 0)
    server.handle(Prepared(PLAN, BATCH), 0)
    close, failed = server.handle(Received(b"[]"), 0)
    assert close.code == 1011
    assert len(close.reason.encode()) <= 123
    assert isinstance(failed, Failed)


def test_server_of_pulls_has_no_blocks_where_there_is_nothing_new() -> None:
    server = PullServer(0)
    server.handle(Received(b'{"force_update_if_diverged":false}'), 0)
    server.handle(Prepared(PLAN, None), 0)
    assert isinstance(failure(server.handle(NOTHING, 0)), RejectedError)


# The pusher


def offer() -> PushRequest:
    return PushRequest(
        current_head=None,
        transfer_plan=PLAN,
        force_update_if_diverged=False,
        visibility_for_created_dataset="Private",
    )


def pusher(objects: list[ObjectFile], *events: Any) -> tuple[PushClient, tuple[Any, ...]]:
    client = PushClient(offer(), BATCH, objects)
    effects = client.handle(Opened(), 0)
    for event in events:
        effects = client.handle(event, 0)
    return client, effects


def strategies(objects: tuple[ObjectFile, ...], strategy: str = "HttpUpload") -> Received:
    found = tuple(
        PushStrategy(object_file=item, push_strategy=strategy, upload_to=URL if strategy == "HttpUpload" else None)  # type: ignore[arg-type]
        for item in objects
    )
    return Received(encode_message(ObjectsPushResponse(ok=PushStrategies(object_transfer_strategies=found))))


def test_pusher_asks_also_when_there_is_no_object() -> None:
    _, effects = pusher([], OK, OK)
    assert effects == (Send(b'{"object_files":[],"is_truncated":false}'),)


def test_pusher_uploads_what_is_not_there_yet() -> None:
    _, effects = pusher([OBJECT], OK, OK, strategies((OBJECT,), "SkipUpload"))
    assert effects == (Upload(()),)


def test_pusher_names_many_objects_in_several_messages() -> None:
    objects = [
        ObjectFile(object_type="DataSlice", physical_hash=str(Multihash.of_sha3_256(str(n).encode())), size=1)
        for n in range(MAX_OBJECTS_PER_MESSAGE + 1)
    ]
    client, effects = pusher(objects, OK, OK)
    first = decode_message(effects[0].text, ObjectsPushRequest)
    assert first.is_truncated
    client.handle(strategies(first.object_files), 0)
    complete, then = client.handle(UploadsDone(), 0)
    assert complete == Send(b'{"details":"Complete"}')
    second = decode_message(then.text, ObjectsPushRequest)
    assert not second.is_truncated
    assert [*first.object_files, *second.object_files] == objects


def test_pusher_tells_how_far_it_is_when_asked() -> None:
    client, _ = pusher([OBJECT], OK, OK, strategies((OBJECT,)))
    client.handle(Uploaded(1), 0)
    assert client.handle(NOTHING, 0) == (Send(b'{"details":{"Running":{"uploaded_objects_count":1}}}'),)


@pytest.mark.parametrize("events", [[], [OK], [OK, OK]], ids=["offer", "blocks", "objects"])
@pytest.mark.parametrize("closes", [False, True])
def test_pusher_hears_why_it_is_refused(events: list[Any], closes: bool) -> None:
    problem = Problem(name_collision=NameCollision(dataset_alias="demo"))
    text = encode_message(Answer(err=problem))
    _, effects = pusher([], *events, Closed(1011, text.decode()) if closes else Received(text))
    assert effects[-1] == Refused(problem)


@pytest.mark.parametrize("reason", ["", "{}", '{"Ok":{}}', "refused: rows", '{"Err":{"Internal":{}}}'])
def test_pusher_never_takes_a_close_for_acceptance(reason: str) -> None:
    client, _ = pusher([], OK, OK, strategies(()))
    client.handle(UploadsDone(), 0)
    effects = client.handle(Closed(1011, reason), 0)
    assert not any(isinstance(effect, Ended) for effect in effects)
    assert isinstance(effects[-1], Failed | Refused)


@pytest.mark.parametrize("code", [None, 1000, 1006])
def test_pusher_without_confirmation_is_not_done(code: int | None) -> None:
    client, _ = pusher([], OK, OK, strategies(()))
    client.handle(UploadsDone(), 0)
    assert isinstance(failure(client.handle(Closed(code), 0)), UnavailableError)


def test_pusher_uploads_nothing_that_was_not_offered() -> None:
    other = ObjectFile(object_type="DataSlice", physical_hash=str(Multihash.of_sha3_256(b"b")), size=1)
    _, effects = pusher([OBJECT], OK, OK, strategies((other,)))
    assert "SMART-7" in str(failure(effects))


# Who is pushed to


def receiver(*events: Any) -> tuple[PushServer, tuple[Any, ...]]:
    server, effects = PushServer(0), ()
    for event in events:
        effects = server.handle(event, 0)
    return server, effects


OFFER = Received(encode_message(offer()))
BLOCKS = Received(encode_message(PushBlocks(new_blocks=BATCH)))
OBJECTS = Received(b'{"object_files":[],"is_truncated":false}')
COMPLETE = Received(b'{"details":"Complete"}')


def test_receiver_says_which_head_it_has() -> None:
    problem = Problem(invalid_head=InvalidHead(actual_head=None, expected_head=str(HASH)))
    _, effects = receiver(OFFER, Declined(problem))
    assert effects[0] == Send(f'{{"Err":{{"InvalidHead":{{"actual_head":null,"expected_head":"{HASH}"}}}}}}'.encode())


def test_receiver_takes_only_as_many_blocks_as_were_planned() -> None:
    more = Received(encode_message(PushBlocks(new_blocks=BlocksBatch.of(b"payload", 2))))
    server, effects = receiver(OFFER, Agreed(), more)
    assert "as-many-blocks-as-planned" in str(failure(effects))
    assert server.handle(BLOCKS, 0) == ()


def test_receiver_says_that_a_seed_is_never_replaced() -> None:
    _, effects = receiver(OFFER, Agreed(), BLOCKS, Declined(Problem(seed_block_overwrite_restricted=Empty())))
    assert effects[0] == Send(b'{"Err":{"SeedBlockOverwriteRestricted":{}}}')


def test_receiver_says_what_is_wrong_with_blocks_where_its_pusher_can_read_it() -> None:
    problem = Problem(name_collision=NameCollision(dataset_alias="demo"))
    server, effects = receiver(OFFER, Agreed(), BLOCKS, Declined(problem))
    assert effects == (Send(b'{"Ok":{}}'),)
    assert server.handle(OBJECTS, 0)[0] == Send(b'{"Err":{"NameCollision":{"dataset_alias":"demo"}}}')


def test_receiver_confirms_only_what_was_agreed_to() -> None:
    planned = UploadsPlanned(())
    server, effects = receiver(OFFER, Agreed(), BLOCKS, Agreed(), OBJECTS, planned, COMPLETE, NOTHING)
    assert effects == (Commit(),)
    assert server.deadline_s is None
    assert server.handle(Agreed(), 0) == (Send(b"{}"), Ended())


def test_receiver_refuses_in_words_that_cannot_be_taken_for_confirmation() -> None:
    planned = UploadsPlanned(())
    server, _ = receiver(OFFER, Agreed(), BLOCKS, Agreed(), OBJECTS, planned, COMPLETE, NOTHING)
    close, _ = server.handle(Failed(RejectedError("ROWS-3 offsets", sequence_number=7)), 0)
    assert close == Close(1011, '"refused: block 7 breaks ROWS-3 offsets"')


def test_reason_of_a_refusal_is_a_text_whatever_it_says() -> None:
    planned = UploadsPlanned(())
    server, _ = receiver(OFFER, Agreed(), BLOCKS, Agreed(), OBJECTS, planned, COMPLETE, NOTHING)
    close, _ = server.handle(Failed(UnavailableError('say "no"\\\n\u00e9' * 50)), 0)
    assert len(close.reason.encode()) <= 123
    assert isinstance(json.loads(close.reason), str)


def test_receiver_defers_what_blocks_break_to_an_answer_that_can_say_it() -> None:
    server, effects = receiver(OFFER, Agreed(), BLOCKS, Failed(RejectedError("ACCEPT-8 own")))
    assert effects == (Send(b'{"Ok":{}}'),)
    text, _ = server.handle(OBJECTS, 0)
    problem = decode_message(text.text, ObjectsPushResponse).problem
    assert problem is not None
    assert problem.explain() == "breaks ACCEPT-8 own"


def test_receiver_asks_for_more_objects_where_there_are_more() -> None:
    some = Received(b'{"object_files":[],"is_truncated":true}')
    planned = UploadsPlanned(())
    _, effects = receiver(OFFER, Agreed(), BLOCKS, Agreed(), some, planned, COMPLETE, OBJECTS)
    assert effects == (PlanUploads(()),)


@pytest.mark.parametrize(
    "events",
    [[BLOCKS], [OFFER, Agreed(), OBJECTS], [OFFER, OFFER], [OFFER, Agreed(), BLOCKS, Agreed(), NOTHING]],
    ids=["blocks-first", "no-blocks", "two-offers", "no-objects"],
)
def test_receiver_takes_no_message_out_of_turn(events: list[Any]) -> None:
    _, effects = receiver(*events)
    assert isinstance(failure(effects), RejectedError | MalformedError)


def test_receiver_forgets_who_left() -> None:
    server, effects = receiver(OFFER, Agreed(), Closed(None))
    assert isinstance(failure(effects), RejectedError)
    assert server.handle(BLOCKS, 0) == ()
