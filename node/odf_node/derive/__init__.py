"""Derivative datasets: the next step, and re-execution of recorded steps."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.derive import chain_log as chain_log
    from odf_node.derive import earlier_rows as earlier_rows
    from odf_node.derive import engine_usage as engine_usage
    from odf_node.derive import grading as grading
    from odf_node.derive import lineage as lineage
    from odf_node.derive import rebuilding as rebuilding
    from odf_node.derive import rows_meant as rows_meant
    from odf_node.derive import step_comparison as step_comparison
    from odf_node.derive import transforms as transforms
    from odf_node.derive import translation as translation
    from odf_node.derive import waiting as waiting
else:
    __getattr__ = late_modules(__name__)
