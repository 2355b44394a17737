"""Nasty texts of 64 kB, and what each costs each entrance: ``python costly_texts.py`` prints one line for each pair.

A line has, between tabs, the target, the text, processor seconds, MB beyond an idle process, and the exit code. Each
pair runs in a fork of its own under limits of processor time and memory, once more if the first try looks costly.
"""

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

BYTES: Final = 64_000
CPU_S: Final = 10
MEMORY_BYTES: Final = 2 << 30


def _fill(part: str, start: str = "", end: str = "") -> bytes:
    count = (BYTES - len(start) - len(end)) // len(part)
    return (start + part * count + end).encode()


def _nested(opening: str, closing: str, middle: str = "", start: str = "") -> bytes:
    count = (BYTES - len(middle) - len(start)) // (len(opening) + len(closing))
    return (start + opening * count + middle + closing * count).encode()


def _numbered(part: str, start: str = "", end: str = "") -> bytes:
    text, number = start, 0
    parts = []
    size = len(start) + len(end)
    while size < BYTES - 40:
        parts.append(part.replace("#", str(number)))
        size += len(parts[-1])
        number += 1
    return (text + "".join(parts) + end).encode()


TEXTS: Final[Mapping[str, bytes]] = {
    "one letter": _fill("a"),
    "zeros": _fill("0"),
    "nines": _fill("9"),
    "exponent": _fill("9", "1e"),
    "spaces": _fill(" "),
    "line ends": _fill("\n"),
    "commas": _fill(","),
    "minus signs": _fill("- "),
    "astral": ("\U0001f600" * (BYTES // 4)).encode(),
    "zero bytes": bytes(BYTES),
    "open brackets": _fill("["),
    "open braces": _fill('{"a":'),
    "open parentheses": _fill("("),
    "arrays": _nested("[", "]"),
    "objects": _nested('{"a":', "}", "1"),
    "flow mappings": _nested("{a: ", "}", "1"),
    "block sequences": _fill("- "),
    "complex keys": _fill("? "),
    "indented mappings": "\n".join(" " * depth + "a:" for depth in range(350)).encode(),
    "long flow key": _fill("a", "{", ": 1}"),
    "distinct keys": _numbered("k#: 1\n"),
    "distinct json keys": _numbered('"k#":1,', "{", '"z":1}'),
    "repeated json keys": _fill('"k":1,', "{", '"k":1}'),
    "repeated keys": _fill("k: 1\n"),
    "anchors": _numbered("a#: &a# [*a#]\n"),
    "aliases": ("a: &a [x,x,x,x,x,x,x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a,*a,*a]\n" for n in range(2_000))).encode(),
    "documents": _fill("---\n"),
    "tags": _fill("!!a "),
    "json numbers": _fill("1,", "[", "1]"),
    "json huge number": _fill("9", "[", "]"),
    "json texts": _fill('"",', "[", '""]'),
    "json escapes": _fill("\\u0000", '"', '"'),
    "surrogates": _fill("\\ud800", '"', '"'),
    "single quotes": _fill("'", "s", ""),
    "odd single quotes": _fill("''", "s'a", ""),
    "mixed quotes": _fill("'\"`", "s"),
    "back ticks": _fill("`", "s`a"),
    "double quotes": _fill('"', 's"a'),
    "backslashes": _fill("\\", "s'"),
    "open comments": _fill("/*", "s"),
    "standard comments": _fill("/*", "d"),
    "stars": _fill("*", "d/*"),
    "line comments": _fill("--\n", "d"),
    "slashes": _fill("/"),
    "dollars": _fill("$a", "s"),
    "raw quotes": _fill("r'", "s"),
    "standard odd quotes": _fill("'a''", "d'"),
    "from quoted": _fill('FROM "a/b" ', "d"),
    "from from": _fill("FROM ", "d"),
    "slashes in an open quote": _fill("/", 'd"'),
    "words and slashes in an open quote": _fill("a/b ", "sFROM `"),
    "quoted twice": _fill('"a/b" ', 'dSELECT 1 FROM "a/b" '),
    "cases": _nested("CASE WHEN true THEN ", " END", "1", "dSELECT "),
    "case in": _nested("CASE a WHEN b IN (", ") THEN 1 END", "1", "dSELECT "),
    "between": _fill(" BETWEEN 1 AND 2", "dSELECT 1 WHERE a"),
    "stars selected": _fill(", *", "dSELECT *", " FROM a"),
    "tables": _numbered(", t# AS (SELECT * FROM t0 JOIN t0)", "dWITH a AS (SELECT 1)", "SELECT 1"),
    "values": _fill(",(1)", "dVALUES (1)"),
    "statements": _fill("a;", "d"),
    "ddl columns": _numbered("c# INT,", "", "z INT"),
    "ddl lines": _numbered("c# INT\n"),
    "ddl arrays": _nested("ARRAY<", ">", "INT", "a "),
    "ddl unknown types": _fill("Z", "a "),
    "ddl numbers": _fill("1,", "a DECIMAL(", "1)"),
    "ddl spaces": _fill(" ", "a INT", ";"),
    "percents": _fill("%a", "\x04"),
    "names": _fill("a.", "\x04"),
    "dashes": _fill("a-", "\x06", "!"),
    "url": _fill("a+", "\x06", "!"),
    "base58": _fill("z", "\x05z"),
    "hash": _fill("z", "\x00f1620"),
    "did key": _fill("z", "\x02did:key:z"),
    "did odf": _fill("f", "\x01did:odf:f"),
    "timestamp": _fill("0", "\x03 2020-01-01T00:00:00.", "Z"),
    "ranges": _fill("1-2,", "bytes="),
    "etags": _fill('W/"'),
    "etags apart": _fill('W/"a",'),
    "components": _fill(' "a"', "a=(", ")\na=:x:"),
    "components without an end": _fill(' "a"', "a=("),
    "parameters": _fill(";a=b", 'a=("a")'),
    "labels": _fill("a.", "http://", ":80"),
    "colons": _fill(":", "http://[", "]:80"),
    "port": _fill("9", "http://a.example:"),
    "spark arrays": _nested('{"type":"array","containsNull":true,"elementType":', "}", '"string"'),
    "spark decimal": _fill("1", '{"type":"struct","fields":[{"name":"a","nullable":true,"type":"decimal(', '"}]}'),
    "bundle": _fill('{"kind":"head","document":"AAAA"},', '{"documents":[', '{"kind":"head","document":"AAAA"}]}'),
    "template": _fill("${{ ", "a: "),
    "templates": _fill("${{ env.a || env.b }}", "a: "),
    "manifest": _numbered(
        "    - kind: SetInfo\n      description: d#\n",
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: a\n  kind: Root\n  metadata:\n",
    ),
}
"""By name; a first letter or byte before some chooses the way of reading that they are made for."""

PATTERN_TEXTS: Final[Mapping[str, bytes]] = {
    "pattern that goes back": b"((a|a)+)+$\n\n" + b"a" * (BYTES - 20),
    "pattern of groups": _nested("(", ")", "a"),
    "pattern of alternatives": _fill("a|", "(", "a)"),
    "pattern of repetitions": _fill("a{999}", "(", ")\n\na"),
    "repetitions inside each other": b"((((((a{9}){9}){9}){9}){9}){9})\n\n" + b"a" * (BYTES - 50),
    "any text again and again": b"(" + b".*" * 480 + b")x\n\n" + b"a" * (BYTES - 1_000),
    "spaces of a time format": _fill(" \t", "(.*)\n%Y", "\n2020"),
    "parts of a time format": _fill("%d", "t"),
    "letters of a time format": _fill("a%%", "t%Y%m%d"),
    "cron of lists": _fill("0-59/1,", "cron: '", "0 * * * *'\ntimeZone: UTC"),
    "cron of spaces": _fill("* ", "cron: '", "'\ntimeZone: UTC"),
    "duration": _fill("9", "every: ", "m"),
    "zone": _fill("../", "cron: 1 1 * * *\ntimeZone: "),
    "validators": _fill("  - {kind: Range, column: a, least: 0}\n", "validators:\n"),
    "image of layers": _fill('"a",', '[{"Config": "config.json", "Layers": [', '"a"]}]\0{}'),
    "digests": _fill('{"digest": "sha256:HASH0"},', '{"manifests": [', '{"digest": "sha256:HASH0"}]}\0{}'),
    "repeated fields": _fill("\x22\x00", "\x04"),
    "lengths that lie": _fill("\x0a\x7f", "w"),
    "groups inside each other": _fill("\x0b", "\x04"),
}
"""Those that only readers of patterns and of plug-ins are made to read."""


def _measure(run: object, data: bytes) -> tuple[float, float, int]:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
            run(data)  # type: ignore[operator]
            status = 0
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is a finding
            print(f"{type(error).__name__}: {str(error)[:500]}", file=sys.stderr)
        finally:
            os._exit(status)
    _, status, usage = os.wait4(child, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, os.waitstatus_to_exitcode(status)


def main() -> None:
    """Measure all."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from fuzz.pattern_targets import PATTERN_TARGETS
    from fuzz.targets import TARGETS

    chosen = sys.argv[1:] or TARGETS
    for name in chosen:
        target = TARGETS[name]
        try:
            target.run(target.seeds()[0])  # once before, for what is loaded on first use
        except Exception as error:  # noqa: BLE001 - said by the tests of targets
            print(f"{name}: {error!r}", file=sys.stderr)
        idle_s, idle_mb, _ = _measure(lambda _data: None, b"")
        texts = {**TEXTS, **PATTERN_TEXTS} if target in PATTERN_TARGETS else TEXTS
        for text, data in texts.items():
            seconds, megabytes, status = _measure(target.run, data)
            if seconds - idle_s > 1:
                again_s, megabytes, status = _measure(target.run, data)
                seconds = min(seconds, again_s)
            print(f"{name}\t{text}\t{seconds - idle_s:.3f}\t{megabytes - idle_mb:.1f}\t{status}", flush=True)


if __name__ == "__main__":
    main()
