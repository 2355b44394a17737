"""Clauses ADDED-7 and ENGINE-29: what a guest says of its progress is bounded, and is never an answer."""

import io
import json
from collections.abc import Iterator

import pytest

from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.progress import progress_line, receive_answer, tell_count, telling

NUMBER = 7
ANSWER = b'{"number": 7, "seconds": 0.1, "result": {}}'


class Lines:
    """Lines of a guest, each there at once."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.lines, self.allowed = lines, list[float]()

    def receive(self, wall_s: float) -> bytes:
        self.allowed.append(wall_s)
        try:
            return next(self.lines)
        except StopIteration:
            raise LimitExceededError("wall_s", allowed=wall_s) from None


def test_progress_is_heard_until_the_answer_and_takes_of_its_time() -> None:
    heard: list[int] = []
    lines = Lines(iter([progress_line(NUMBER, 1).encode(), progress_line(NUMBER, 9).encode() + b"\n", ANSWER]))
    assert receive_answer(lines, NUMBER, 5.0, heard.append) == ANSWER
    assert heard == [1, 9]
    assert lines.allowed == sorted(lines.allowed, reverse=True)


def test_guest_that_speaks_without_end_is_ended() -> None:
    heard: list[int] = []
    with pytest.raises(EngineFailureError, match="times that it works, and nothing else"):
        receive_answer(Lines(iter(lambda: progress_line(NUMBER, 1).encode(), b"")), NUMBER, 600.0, heard.append)
    assert len(heard) < 1000


def test_time_that_is_up_is_that_of_the_request() -> None:
    with pytest.raises(LimitExceededError) as caught:
        receive_answer(Lines(iter([progress_line(NUMBER, 1).encode()])), NUMBER, 5.0, lambda _count: None)
    assert caught.value.allowed == 5.0


@pytest.mark.parametrize(
    "line",
    [
        progress_line(NUMBER + 1, 1).encode(),
        b'{"number": 7, "progress": -1}',
        b'{"number": 7, "progress": "\x1b[31m"}',
        b'{"number": 7, "progress": 1' + b"0" * 400 + b"}",
        b'{"number": 7, "progress": 1, "result": {}}',
        b"",
    ],
)
def test_what_is_no_word_about_progress_is_taken_for_the_answer(line: bytes) -> None:
    """Where it is read as strictly as any."""
    heard: list[int] = []
    assert receive_answer(Lines(iter([line])), NUMBER, 5.0, heard.append) == line
    assert not heard


def test_guest_tells_what_it_read_once_a_second_and_nothing_outside_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, now_s = io.StringIO(), [0.0]
    monkeypatch.setattr("odf_engines.progress.time.monotonic", lambda: now_s[0])
    tell_count(1)
    with telling(NUMBER, answers):
        for count in range(1, 31):
            now_s[0] += 0.1
            tell_count(count)
    tell_count(99)
    said = [int(json.loads(line)["progress"]) for line in answers.getvalue().splitlines()]
    assert len(said) in {2, 3}
    assert said == sorted(said)
    assert all(
        receive_answer(Lines(iter([line.encode(), ANSWER])), NUMBER, 5.0, lambda _count: None) == ANSWER
        for line in answers.getvalue().splitlines()
    )
