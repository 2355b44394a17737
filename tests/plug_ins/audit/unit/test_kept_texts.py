"""What others chose is bounded, on one line and without secrets before it is kept (AUDIT-11)."""

import pytest

from odf_audit.texts import HIDDEN, MAX_WORDS, NAME_CHARACTERS, bounded, without_secrets


def test_texts_are_bounded_and_printable() -> None:
    assert bounded("curl/8.0") == "curl/8.0"
    assert len(bounded("x" * 10_000)) == NAME_CHARACTERS
    assert bounded("a\x1b[2Jb\nc\u202ed\udc80") == "a\\u001b[2Jb\\u000ac\\u202ed\\udc80"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["job.py", "--table", "sales"], ["job.py", "--table", "sales"]),
        (["job.py", "--token", "hunter2", "x"], ["job.py", "--token", HIDDEN, "x"]),
        (["job.py", "--db-password=hunter2"], ["job.py", f"--db-password={HIDDEN}"]),
        (["job.py", "PASSWORD=hunter2"], ["job.py", f"PASSWORD={HIDDEN}"]),
        (["pull", "http://me:hunter2@host/x"], ["pull", f"http://{HIDDEN}@host/x"]),
        (["-c", 'connect(api_key="hunter2")'], ["-c", f"connect(api_key={HIDDEN}"]),
        (["--secret-key", "hunter2"], ["--secret-key", HIDDEN]),
    ],
)
def test_secrets_are_left_out(words: list[str], kept: list[str]) -> None:
    assert without_secrets(words) == (tuple(kept), kept != words)


def test_command_line_without_end_is_cut() -> None:
    kept, is_changed = without_secrets(["x"] * 10_000)
    assert (len(kept), is_changed) == (MAX_WORDS, True)
    (word,), is_changed = without_secrets(["x" * 1_000_000])
    assert len(word) <= 1_000
    assert is_changed
