"""Arrow Flight SQL: a port beside the HTTP one where ADBC and JDBC clients list, ask and read.

Source: ``spec/extensions/flight-sql.md``.
"""

from typing import TYPE_CHECKING

from odf_node.flight.serving import flight_beside
from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.flight import answers as answers
    from odf_node.flight import callers as callers
    from odf_node.flight import questions as questions
    from odf_node.flight import server as server
else:
    __getattr__ = late_modules(__name__)

__all__ = ["flight_beside"]
