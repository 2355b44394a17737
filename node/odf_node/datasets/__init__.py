"""Datasets of this node.

Creation, names, reading of chains and rows, questions, growth by our own blocks, deletion.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.datasets import creation as creation
    from odf_node.datasets import deletion as deletion
    from odf_node.datasets import exporting as exporting
    from odf_node.datasets import naming as naming
    from odf_node.datasets import quarantine_table as quarantine_table
    from odf_node.datasets import queries as queries
    from odf_node.datasets import reading as reading
    from odf_node.datasets import referencing as referencing
    from odf_node.datasets import row_files as row_files
    from odf_node.datasets import writer as writer
else:
    __getattr__ = late_modules(__name__)
