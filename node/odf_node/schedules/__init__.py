"""Schedules: when which datasets of this node are pulled by themselves (SCHED)."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.schedules import notes as notes
    from odf_node.schedules import overview as overview
else:
    __getattr__ = late_modules(__name__)
