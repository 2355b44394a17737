"""Added engines of a home, as the core asks for them.

``PLUG_IN`` is found by its entry point in the group ``odf_node.engine_files``.
"""

from typing import Final

from odf_foreign.engine_folder import EngineFolder
from odf_node.engines.files import EngineFilesPlugIn

PLUG_IN: Final = EngineFilesPlugIn(EngineFolder)
