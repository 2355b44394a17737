"""The FlatBuffers builder, without numpy: the library would load it for vectors of numbers, which no block has.

It can do without numpy where that is not installed. Here it is told so, as loading numpy takes longer than many a
command.
"""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

__all__ = ["Builder", "number_types"]


def _leave_numpy_out() -> None:
    package = find_spec("flatbuffers")
    if "flatbuffers" in sys.modules or package is None or not package.submodule_search_locations:
        return
    spec = spec_from_file_location("flatbuffers.compat", f"{package.submodule_search_locations[0]}/compat.py")
    if spec is None or spec.loader is None:
        return
    compat = module_from_spec(spec)
    spec.loader.exec_module(compat)
    compat.import_numpy = lambda: None  # type: ignore[attr-defined]
    sys.modules.setdefault(spec.name, compat)


_leave_numpy_out()

from flatbuffers import Builder, number_types  # noqa: E402 - after that
