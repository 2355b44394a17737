"""Where every program of ours in a sandbox begins: limits first, then the module that does the work.

Arguments: the module's name, and JSON for its ``main``, in which ``limits`` are those of the kernel. What is loaded
here is what limits need; that module's own imports stand at its top, and are bounded already.

Source: clause SANDBOX-7 in ``spec/extensions/sandbox.md``.
"""

import importlib
import json
import sys

if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site", "/runtime/plug-ins"]
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    importlib.import_module("odf_engines.sandbox.resources").set_kernel_limits(arguments["limits"])
    importlib.import_module(name).main(arguments)
