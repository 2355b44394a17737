"""Schedules that the manifest of somebody else states: each is followed or rejected in one line, at once.

Source: clauses SCHED-2, SCHED-3 and SCHED-11 in ``spec/plug-ins/schedules.md``.
"""

import time

import pytest

from odf_protocol.errors import OdfError
from odf_schedules.declared_schedule import parse_schedule

CRON = "cron: '0 0 * * *'\n"
LIMIT_S = 2.0  # guess: a hundred times what each takes
SWELLING = [",".join([f"*{name}"] * 9) for name in "abcd"]
FALSE = {
    "empty": "",
    "list": "- every: 1m",
    "two-docs": "every: 1m\n---\nevery: 2m",
    "bomb": "".join(f"{n}: &{n} [{o}]\n" for n, o in zip("abcde", ["x", *SWELLING], strict=True)),
    "alias": "every: &x 1m\ncron: *x",
    "merge": "<<: {every: 1m}",
    "tag": "every: !!python/object/apply:os.system ['id']",
    "dup": "every: 1m\nevery: 2m",
    "zero": "every: 0s",
    "neg": "every: -1m",
    "huge": "every: 99999999999999999999999d",
    "float": "every: 1.5h",
    "inf": "every: .inf",
    "nan": "every: .nan",
    "sci": "every: 1e3s",
    "unicode-digits": "every: \u0661m",
    "bool": "every: true",
    "null": "every: ~",
    "spaces": "every: ' 1m '",
    "long": f"every: {'1' * 60_000}m",
    "cron-6": "cron: '* * * * * *'",
    "cron-0": "cron: '*/0 * * * *'",
    "cron-neg": "cron: '-1 * * * *'",
    "cron-big": "cron: '99 * * * *'",
    "cron-never": "cron: '0 0 30 2 *'",
    "cron-long": f"cron: '{','.join(['0'] * 20_000)} * * * *'",
    "cron-range": "cron: '0-99999999 * * * *'",
    "cron-step2": f"cron: '*/{'9' * 5_000} * * * *'",
    "cron-names": "cron: '0 0 * foo *'",
    "cron-nul": 'cron: "0 0 * * *\\0"',
    "cron-hash": "cron: '0 0 * * 1#9'",
    "cron-rand": "cron: 'R R R R R'",
    "cron-H": "cron: 'H H * * *'",
    "cron-at": "cron: '@reboot'",
    "tz-path": CRON + "timeZone: ../../../etc/passwd",
    "tz-abs": CRON + "timeZone: /etc/localtime",
    "tz-none": CRON + "timeZone: Mars/Base",
    "tz-empty": CRON + "timeZone: ''",
    "tz-dir": CRON + "timeZone: Europe",
    "tz-nul": CRON + 'timeZone: "UTC\\0x"',
    "tz-long": f"{CRON}timeZone: {'A/' * 20_000}",
    "tz-dot": CRON + "timeZone: ./UTC",
    "tz-posix": CRON + "timeZone: EST5EDT4,M3.2.0",
    "tz-every": "every: 1m\ntimeZone: UTC",
    "tz-tab": CRON + "timeZone: tzdata.zi",
    "tz-back": CRON + "timeZone: 'Europe\\Berlin'",
    "prio": "every: 1m\npriority: highest",
    "pause": "every: 1m\npause: 999999999d",
    "pause-neg": "every: 1m\npause: -5s",
    "flag": "every: 1m\nderivatives: yes",
    "unknown": "every: 1m\ncommand: rm -rf /",
    "datasets": "every: 1m\ndatasets: '%'",
    "deep": f"every: {'[' * 5_000}",
    "bidi": "every: \u202e1m",
    "esc": 'every: "\\e[2J"',
    "map": "every: {a: b}",
}
TAKEN = {
    "cron-step": "cron: '0-59/99999999999 * * * *'",
    "cron-L": "cron: '0 0 L * *'",
    "cron-leap": "cron: '0 0 29 2 1#5'",
    "tz-leap": "cron: '0 0 * * *'\ntimeZone: right/UTC",
    "bom": "\ufeffevery: 1m",
    "crlf": "every: 1m\r\npriority: low\r\n",
    "cr": "every: 1m\rpriority: low",
}


@pytest.mark.parametrize("lie", FALSE)
def test_schedule_that_cannot_be_followed_is_rejected_in_one_printable_line(lie: str) -> None:
    """SCHED-11"""
    begun_s = time.monotonic()
    with pytest.raises(OdfError) as caught:
        parse_schedule(FALSE[lie], "x")
    assert time.monotonic() - begun_s < LIMIT_S
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("text", TAKEN)
def test_schedule_that_only_looks_odd_is_taken(text: str) -> None:
    """SCHED-11: otherwise what rejects everything would pass."""
    assert parse_schedule(TAKEN[text], "x").datasets == "x"
