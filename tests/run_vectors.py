"""Run test vectors: ``python tests/run_vectors.py FILE...``; exit status 0 if all passed, 1 if one failed."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.vectors.check import Check
from support.vectors.extension_forms import EXTENSION_FORMS
from support.vectors.forms import FORMS
from support.vectors.reference_form import SECTIONS

_FORMS = {**FORMS, **EXTENSION_FORMS}


def iter_checks(document: Any) -> Iterator[Check]:
    """Yield the checks of one file, in either form.

    Raises:
        ValueError: Neither form.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if isinstance(kind, str) and kind in _FORMS:
        yield from _FORMS[kind](document)
        return
    sections = [name for name in SECTIONS if isinstance(document, dict) and name in document]
    if not sections:
        raise ValueError(f"neither of the kinds {', '.join(_FORMS)} nor with any of the sections {', '.join(SECTIONS)}")
    for name in sections:
        yield from SECTIONS[name](document[name])


def main(arguments: Sequence[str]) -> int:
    """Run the files and print what failed, then the counts."""
    if not arguments:
        print("usage: python tests/run_vectors.py FILE...", file=sys.stderr)
        return 2
    passed = failed = 0
    for name in arguments:
        try:
            checks = list(iter_checks(json.loads(Path(name).read_bytes())))
        except (OSError, ValueError, LookupError, TypeError) as error:
            print(f"FAILED {name}: cannot be read: {type(error).__name__}: {error}")
            failed += 1
            continue
        for check in checks:
            failure = check.find_failure()
            if failure is None:
                passed += 1
            else:
                failed += 1
                print(f"FAILED {name}: {check.comment}: {failure}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
