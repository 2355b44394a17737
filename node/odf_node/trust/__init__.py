"""What data rest on: verification of what is held, audits, statements for others, evidence."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.trust import auditing as auditing
    from odf_node.trust import grounds as grounds
    from odf_node.trust import trusting as trusting
    from odf_node.trust import verifying as verifying
else:
    __getattr__ = late_modules(__name__)
