"""The four roles of the Smart Transfer Protocol, without a network (SMART-5 to SMART-10)."""

import json
from typing import Any

import pytest

from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnavailableError
from odf_protocol.multihash import Multihash
from odf_smart_protocol.conversation import (
    Close,
    Closed,
    ConversationFailed,
    Ended,
    Opened,
    ReceivedMessage,
    Rejected,
    SendMessage,
    TimePassed,
)
from odf_smart_protocol.limits import ANSWER_S, IDLE_S, MAX_OBJECTS_PER_MESSAGE
from odf_smart_protocol.messages import (
    Answer,
    BlocksBatch,
    BlocksResponse,
    ObjectFile,
    ObjectsPullRequest,
    ObjectsPullResponse,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PullResponse,
    PullStrategy,
    PushBlocks,
    PushStrategies,
    PushStrategy,
    SmartPullRequest,
    SmartPushRequest,
    TransferPlan,
    TransferUrl,
    decode_message,
    encode_message,
)
from odf_smart_protocol.problems import Empty, InvalidHead, InvalidInterval, NameCollision, TransferProblem
from odf_smart_protocol.pull_client import FetchBlocks, Finish, Locate, Located, Planned, PullClient
from odf_smart_protocol.pull_server import (
    LocateObjects,
    NotPrepared,
    ObjectsLocated,
    Prepare,
    PreparedTransfer,
    PullServer,
)
from odf_smart_protocol.push_client import PushClient, Upload, Uploaded, UploadsDone
from odf_smart_protocol.push_server import (
    Agreed,
    CommitTransfer,
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
OK = ReceivedMessage(b'{"Ok":{}}')
NOTHING = ReceivedMessage(b"{}")


def sent(effects: tuple[Any, ...]) -> list[bytes]:
    return [effect.text for effect in effects if isinstance(effect, SendMessage)]


def failure(effects: tuple[Any, ...]) -> OdfError:
    (failed,) = [effect for effect in effects if isinstance(effect, ConversationFailed)]
    return failed.error


# Against recordings


def reexecuting_pull(recorded: Recorded) -> list[bytes]:
    """Let our client hold the recorded conversation with the recorded server."""
    stated = recorded.texts("client")
    first = decode_message(stated[0], SmartPullRequest)
    asked = decode_message(stated[2], ObjectsPullRequest).object_files if len(stated) > 2 else ()
    client = PullClient(begin_after=None if first.begin_after is None else Multihash.parse(first.begin_after))
    answers = iter(recorded.texts("server"))
    texts = sent(client.handle(Opened(), 0))
    effects = client.handle(ReceivedMessage(next(answers)), 0)
    for event in (FetchBlocks(), Locate(asked)) if asked else ():
        texts += sent(client.handle(event, 0))
        effects = client.handle(ReceivedMessage(next(answers)), 0)
    assert isinstance(effects[0], Located if asked else Planned)
    assert client.handle(Finish(), 0) == (Close(1000, "Client pull flow succeeded"), Ended())
    assert next(answers, None) is None
    return texts


@pytest.mark.parametrize("name", PULLS)
def test_our_puller_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    assert reexecuting_pull(recorded) == recorded.texts("client")


@pytest.mark.parametrize("name", PULLS)
def test_our_server_of_pulls_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    server, texts = PullServer(0), list[bytes]()
    answers = recorded.texts("server")
    for text in recorded.texts("client"):
        (effect,) = server.handle(ReceivedMessage(text), 0)
        match effect:
            case Prepare():
                plan = decode_message(answers[0], PullResponse).ok
                assert plan
                batch = decode_message(answers[1], BlocksResponse).blocks if len(answers) > 1 else None
                texts += sent(server.handle(PreparedTransfer(plan.transfer_plan, batch), 0))
            case LocateObjects():
                strategies = decode_message(answers[2], ObjectsPullResponse).object_transfer_strategies
                texts += sent(server.handle(ObjectsLocated(strategies), 0))
            case SendMessage(text):
                texts.append(text)
    assert texts == answers
    assert server.handle(Closed(1000, "Client pull flow succeeded"), 0) == (Ended(),)


@pytest.mark.parametrize("name", PUSHES)
def test_our_pusher_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    stated, texts = recorded.texts("client"), list[bytes]()
    client = PushClient(
        decode_message(stated[0], SmartPushRequest),
        decode_message(stated[1], PushBlocks).new_blocks,
        decode_message(stated[2], ObjectsPushRequest).object_files,
    )
    answers = iter(recorded.texts("server"))
    effects = client.handle(Opened(), 0)
    while not isinstance(effects[-1], Ended):
        texts += sent(effects)
        if isinstance(effects[0], Upload):
            assert {item.push_strategy for item in effects[0].strategies} <= {"HttpUpload"}
            effects = client.handle(UploadsDone(), 0)
        else:
            effects = client.handle(ReceivedMessage(next(answers)), 0)
    assert texts == stated
    assert effects == (Close(1000, "Client push flow succeeded"), Ended())


@pytest.mark.parametrize("name", PUSHES)
def test_our_server_of_pushes_says_what_is_recorded(name: str) -> None:
    recorded = read_recordings()[name]
    server, texts, answers = PushServer(0), list[bytes](), recorded.texts("server")
    for text in recorded.texts("client"):
        for effect in server.handle(ReceivedMessage(text), 0):
            match effect:
                case PlanUploads():
                    plan = decode_message(answers[2], ObjectsPushResponse).ok
                    assert plan
                    texts += sent(server.handle(UploadsPlanned(plan.object_transfer_strategies), 0))
                case Judge() | TakeBlocks() | CommitTransfer():
                    texts += sent(server.handle(Agreed(), 0))
    assert texts == answers


# The puller


def planned_client() -> PullClient:
    client = PullClient(begin_after=None)
    client.handle(Opened(), 0)
    return client


def located_client(*objects: ObjectFile) -> PullClient:
    client = planned_client()
    client.handle(ReceivedMessage(encode_message(PullResponse(ok={"transfer_plan": PLAN}))), 0)
    client.handle(FetchBlocks(), 0)
    client.handle(ReceivedMessage(encode_message(BlocksResponse(blocks=BATCH))), 0)
    client.handle(Locate(objects), 0)
    return client


def test_puller_hears_why_there_is_no_plan() -> None:
    problem = TransferProblem(invalid_interval=InvalidInterval(head=str(HASH), tail=str(HASH)))
    close, refused = planned_client().handle(ReceivedMessage(encode_message(PullResponse(err=problem))), 0)
    assert close == Close(1000, "")
    assert refused == Rejected(problem)


def test_puller_reads_a_failure_from_the_close_frame() -> None:
    reason = '{"Err":{"Internal":{"phase":{"Pull":"InitialRequest"},"error_message":"Internal error"}}}'
    _, refused = planned_client().handle(Closed(1011, reason), 0)
    assert isinstance(refused, Rejected)
    assert refused.problem.explain() == "Internal error"


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param(TimePassed(), UnavailableError, id="no-answer"),
        pytest.param(Closed(None), UnavailableError, id="line-broke"),
        pytest.param(Closed(1000), UnavailableError, id="closed-without-an-answer"),
        pytest.param(Closed(1011, "no json"), MalformedError, id="closed-without-a-reason"),
        pytest.param(ReceivedMessage(b"{}"), MalformedError, id="no-plan"),
        pytest.param(ReceivedMessage(b'{"Ok":null}'), MalformedError, id="empty-plan"),
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
    client.handle(ReceivedMessage(encode_message(PullResponse(ok={"transfer_plan": PLAN}))), 0)
    assert isinstance(failure(client.handle(ReceivedMessage(b'{"blocks":{}}'), 0)), RejectedError)


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
    assert "SMART-7" in str(failure(located_client(OBJECT).handle(ReceivedMessage(answer), 0)))


# Who is pulled from


def test_server_of_pulls_says_that_it_does_not_know_the_block() -> None:
    server = PullServer(0)
    server.handle(ReceivedMessage(b'{"begin_after":null,"stop_at":null,"force_update_if_diverged":false}'), 0)
    problem = TransferProblem(invalid_interval=InvalidInterval(head=str(HASH), tail=str(HASH)))
    text, ended = server.handle(NotPrepared(problem), 0)
    assert text == SendMessage(f'{{"Err":{{"InvalidInterval":{{"head":"{HASH}","tail":"{HASH}"}}}}}}'.encode())
    assert ended == Ended()


def test_server_of_pulls_ends_what_is_idle() -> None:
    server = PullServer(10.0)
    assert server.deadline_s == 10.0 + IDLE_S
    assert isinstance(failure(server.handle(TimePassed(), 2_000.0)), UnavailableError)


def test_server_of_pulls_that_fails_says_so_while_it_can() -> None:
    server = PullServer(0)
    server.handle(ReceivedMessage(b'{"force_update_if_diverged":false}'), 0)
    text, _ = server.handle(ConversationFailed(UnavailableError("the disk is gone")), 0)
    problem = decode_message(text.text, PullResponse).problem
    assert problem is not None
    assert problem.explain() == "the disk is gone"


def test_server_of_pulls_closes_when_no_answer_can_say_what_is_wrong() -> None:
    server = PullServer(0)
    server.handle(ReceivedMessage(b'{"force_update_if_diverged":false}'), 0)
    server.handle(PreparedTransfer(PLAN, BATCH), 0)
    close, failed = server.handle(ReceivedMessage(b"[]"), 0)
    assert close.code == 1011
    assert len(close.reason.encode()) <= 123
    assert isinstance(failed, ConversationFailed)


def test_server_of_pulls_has_no_blocks_where_there_is_nothing_new() -> None:
    server = PullServer(0)
    server.handle(ReceivedMessage(b'{"force_update_if_diverged":false}'), 0)
    server.handle(PreparedTransfer(PLAN, None), 0)
    assert isinstance(failure(server.handle(NOTHING, 0)), RejectedError)


# The pusher


def proposal() -> SmartPushRequest:
    return SmartPushRequest(
        current_head=None,
        transfer_plan=PLAN,
        force_update_if_diverged=False,
        visibility_for_created_dataset="Private",
    )


def pusher(objects: list[ObjectFile], *events: Any) -> tuple[PushClient, tuple[Any, ...]]:
    client = PushClient(proposal(), BATCH, objects)
    effects = client.handle(Opened(), 0)
    for event in events:
        effects = client.handle(event, 0)
    return client, effects


def strategies(objects: tuple[ObjectFile, ...], strategy: str = "HttpUpload") -> ReceivedMessage:
    found = tuple(
        PushStrategy(object_file=item, push_strategy=strategy, upload_to=URL if strategy == "HttpUpload" else None)  # type: ignore[arg-type]
        for item in objects
    )
    return ReceivedMessage(encode_message(ObjectsPushResponse(ok=PushStrategies(object_transfer_strategies=found))))


def test_pusher_asks_also_when_there_is_no_object() -> None:
    _, effects = pusher([], OK, OK)
    assert effects == (SendMessage(b'{"object_files":[],"is_truncated":false}'),)


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
    assert complete == SendMessage(b'{"details":"Complete"}')
    second = decode_message(then.text, ObjectsPushRequest)
    assert not second.is_truncated
    assert [*first.object_files, *second.object_files] == objects


def test_pusher_tells_how_far_it_is_when_asked() -> None:
    client, _ = pusher([OBJECT], OK, OK, strategies((OBJECT,)))
    client.handle(Uploaded(1), 0)
    assert client.handle(NOTHING, 0) == (SendMessage(b'{"details":{"Running":{"uploaded_objects_count":1}}}'),)


@pytest.mark.parametrize("events", [[], [OK], [OK, OK]], ids=["offer", "blocks", "objects"])
@pytest.mark.parametrize("closes", [False, True])
def test_pusher_hears_why_it_is_rejected(events: list[Any], closes: bool) -> None:
    problem = TransferProblem(name_collision=NameCollision(dataset_alias="demo"))
    text = encode_message(Answer(err=problem))
    _, effects = pusher([], *events, Closed(1011, text.decode()) if closes else ReceivedMessage(text))
    assert effects[-1] == Rejected(problem)


@pytest.mark.parametrize("reason", ["", "{}", '{"Ok":{}}', "rejected: rows", '{"Err":{"Internal":{}}}'])
def test_pusher_never_takes_a_close_for_acceptance(reason: str) -> None:
    client, _ = pusher([], OK, OK, strategies(()))
    client.handle(UploadsDone(), 0)
    effects = client.handle(Closed(1011, reason), 0)
    assert not any(isinstance(effect, Ended) for effect in effects)
    assert isinstance(effects[-1], ConversationFailed | Rejected)


@pytest.mark.parametrize("code", [None, 1000, 1006])
def test_pusher_without_confirmation_is_not_done(code: int | None) -> None:
    client, _ = pusher([], OK, OK, strategies(()))
    client.handle(UploadsDone(), 0)
    assert isinstance(failure(client.handle(Closed(code), 0)), UnavailableError)


def test_pusher_uploads_nothing_that_was_not_proposed() -> None:
    other = ObjectFile(object_type="DataSlice", physical_hash=str(Multihash.of_sha3_256(b"b")), size=1)
    _, effects = pusher([OBJECT], OK, OK, strategies((other,)))
    assert "SMART-7" in str(failure(effects))


# Who is pushed to


def receiver(*events: Any) -> tuple[PushServer, tuple[Any, ...]]:
    server, effects = PushServer(0), ()
    for event in events:
        effects = server.handle(event, 0)
    return server, effects


PROPOSAL = ReceivedMessage(encode_message(proposal()))
BLOCKS = ReceivedMessage(encode_message(PushBlocks(new_blocks=BATCH)))
OBJECTS = ReceivedMessage(b'{"object_files":[],"is_truncated":false}')
COMPLETE = ReceivedMessage(b'{"details":"Complete"}')


def test_receiver_says_which_head_it_has() -> None:
    problem = TransferProblem(invalid_head=InvalidHead(actual_head=None, expected_head=str(HASH)))
    _, effects = receiver(PROPOSAL, Declined(problem))
    assert effects[0] == SendMessage(
        f'{{"Err":{{"InvalidHead":{{"actual_head":null,"expected_head":"{HASH}"}}}}}}'.encode()
    )


def test_receiver_takes_only_as_many_blocks_as_were_planned() -> None:
    more = ReceivedMessage(encode_message(PushBlocks(new_blocks=BlocksBatch.of(b"payload", 2))))
    server, effects = receiver(PROPOSAL, Agreed(), more)
    assert "as-many-blocks-as-planned" in str(failure(effects))
    assert server.handle(BLOCKS, 0) == ()


def test_receiver_says_that_a_seed_is_never_replaced() -> None:
    _, effects = receiver(
        PROPOSAL, Agreed(), BLOCKS, Declined(TransferProblem(seed_block_overwrite_restricted=Empty()))
    )
    assert effects[0] == SendMessage(b'{"Err":{"SeedBlockOverwriteRestricted":{}}}')


def test_receiver_says_what_is_wrong_with_blocks_where_its_pusher_can_read_it() -> None:
    problem = TransferProblem(name_collision=NameCollision(dataset_alias="demo"))
    server, effects = receiver(PROPOSAL, Agreed(), BLOCKS, Declined(problem))
    assert effects == (SendMessage(b'{"Ok":{}}'),)
    assert server.handle(OBJECTS, 0)[0] == SendMessage(b'{"Err":{"NameCollision":{"dataset_alias":"demo"}}}')


def test_receiver_confirms_only_what_was_agreed_to() -> None:
    planned = UploadsPlanned(())
    server, effects = receiver(PROPOSAL, Agreed(), BLOCKS, Agreed(), OBJECTS, planned, COMPLETE, NOTHING)
    assert effects == (CommitTransfer(),)
    assert server.deadline_s is None
    assert server.handle(Agreed(), 0) == (SendMessage(b"{}"), Ended())


def test_receiver_rejects_in_words_that_cannot_be_taken_for_confirmation() -> None:
    planned = UploadsPlanned(())
    server, _ = receiver(PROPOSAL, Agreed(), BLOCKS, Agreed(), OBJECTS, planned, COMPLETE, NOTHING)
    close, _ = server.handle(ConversationFailed(RejectedError("ROWS-3 offsets", sequence_number=7)), 0)
    assert close == Close(1011, '"rejected: block 7 breaks ROWS-3 offsets"')


def test_reason_of_a_rejection_is_a_text_whatever_it_says() -> None:
    planned = UploadsPlanned(())
    server, _ = receiver(PROPOSAL, Agreed(), BLOCKS, Agreed(), OBJECTS, planned, COMPLETE, NOTHING)
    close, _ = server.handle(ConversationFailed(UnavailableError('say "no"\\\n\u00e9' * 50)), 0)
    assert len(close.reason.encode()) <= 123
    assert isinstance(json.loads(close.reason), str)


def test_receiver_defers_what_blocks_break_to_an_answer_that_can_say_it() -> None:
    server, effects = receiver(PROPOSAL, Agreed(), BLOCKS, ConversationFailed(RejectedError("ACCEPT-8 own")))
    assert effects == (SendMessage(b'{"Ok":{}}'),)
    text, _ = server.handle(OBJECTS, 0)
    problem = decode_message(text.text, ObjectsPushResponse).problem
    assert problem is not None
    assert problem.explain() == "breaks ACCEPT-8 own"


def test_receiver_asks_for_more_objects_where_there_are_more() -> None:
    some = ReceivedMessage(b'{"object_files":[],"is_truncated":true}')
    planned = UploadsPlanned(())
    _, effects = receiver(PROPOSAL, Agreed(), BLOCKS, Agreed(), some, planned, COMPLETE, OBJECTS)
    assert effects == (PlanUploads(()),)


@pytest.mark.parametrize(
    "events",
    [[BLOCKS], [PROPOSAL, Agreed(), OBJECTS], [PROPOSAL, PROPOSAL], [PROPOSAL, Agreed(), BLOCKS, Agreed(), NOTHING]],
    ids=["blocks-first", "no-blocks", "two-offers", "no-objects"],
)
def test_receiver_takes_no_message_out_of_turn(events: list[Any]) -> None:
    _, effects = receiver(*events)
    assert isinstance(failure(effects), RejectedError | MalformedError)


def test_receiver_forgets_who_left() -> None:
    server, effects = receiver(PROPOSAL, Agreed(), Closed(None))
    assert isinstance(failure(effects), RejectedError)
    assert server.handle(BLOCKS, 0) == ()
