"""Rows of slices.

Read, checked against their block, hashed and compared, where the file comes from untrusted input in a limited
process.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.rows import changelog_check as changelog_check
    from odf_node.rows import data_files as data_files
    from odf_node.rows import event_times as event_times
    from odf_node.rows import new_rows as new_rows
    from odf_node.rows import row_windows as row_windows
    from odf_node.rows import row_writing as row_writing
    from odf_node.rows import slice_answers as slice_answers
    from odf_node.rows import slices as slices
else:
    __getattr__ = late_modules(__name__)
