"""Rows of slices.

Read, checked against their block, hashed and compared: asked for here, done in a sandbox (``odf_engines.reading``).
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.rows import chain_slices as chain_slices
    from odf_node.rows import changelog_check as changelog_check
    from odf_node.rows import data_files as data_files
    from odf_node.rows import file_hashes as file_hashes
else:
    __getattr__ = late_modules(__name__)
