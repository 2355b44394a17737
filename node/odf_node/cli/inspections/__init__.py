"""What ``odf-node inspect`` shows, by what is looked at; each takes the context and writes text or JSON."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.cli.inspections import definition as definition
    from odf_node.cli.inspections import plans as plans
else:
    __getattr__ = late_modules(__name__)
