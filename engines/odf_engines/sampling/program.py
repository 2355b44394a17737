"""The program of the sandbox in which the beginning of a file is looked at; ``looking`` is what it does."""

import importlib
import json
import sys

if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site"]
    importlib.import_module("odf_engines.sampling.looking").main(json.loads(sys.argv[1]))
