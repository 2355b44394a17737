"""Rows of files that others wrote: read, checked against their block, hashed, compared and written anew.

All of it runs in a sandbox: ``program`` is what is started there, and opens files; ``host.reader_process`` starts and
asks it, and opens none. Nothing outside of a sandbox decodes Parquet that another could have chosen (SANDBOX-17).
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_engines.reading import event_times as event_times
    from odf_engines.reading import evolved_rows as evolved_rows
    from odf_engines.reading import new_rows as new_rows
    from odf_engines.reading import output_files as output_files
    from odf_engines.reading import row_windows as row_windows
    from odf_engines.reading import row_writing as row_writing
    from odf_engines.reading import slices as slices
else:
    __getattr__ = late_modules(__name__)
