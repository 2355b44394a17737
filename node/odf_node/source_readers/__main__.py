"""One request from standard input, and its answer; see the package."""

import importlib
import json
import resource
import sys

if __name__ == "__main__":
    reader = importlib.import_module(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (reader.MEMORY_BYTES,) * 2)
    found = reader.answer(json.load(sys.stdin), sys.stdout.buffer)
    sys.stdout.flush()
    sys.stderr.write(json.dumps(found))
