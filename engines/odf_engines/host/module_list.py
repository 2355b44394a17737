"""A program for the sandbox: imports what it is told to and answers with the files of all modules that are loaded then.

Source: clause ENGINE-20 in ``spec/extensions/engine-contract.md``.
"""

import importlib
import json
import sys

__all__ = ["main"]


def main(names: list[str]) -> None:
    """Print one line of JSON: paths inside the sandbox, of Python code only, sorted."""
    for name in names:
        importlib.import_module(name)
    files = {str(getattr(module, "__file__", None)) for module in sys.modules.values()}
    print(json.dumps(sorted(file for file in files if file.endswith(".py"))), flush=True)


if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site"]
    main(sys.argv[1:])
