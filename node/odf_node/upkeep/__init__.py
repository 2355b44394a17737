"""Care for what is held: repair, scrub, and files of derivatives that can be computed again."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.upkeep import derived_cache as derived_cache
    from odf_node.upkeep import listing as listing
    from odf_node.upkeep import repairing as repairing
    from odf_node.upkeep import scrubbing as scrubbing
    from odf_node.upkeep import status as status
    from odf_node.upkeep import sweeping as sweeping
else:
    __getattr__ = late_modules(__name__)
