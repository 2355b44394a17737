"""Arrow Flight SQL: a port beside the HTTP one where ADBC and JDBC clients list, ask and read.

Source: ``spec/plug-ins/flight-sql.md``.
"""

from typing import TYPE_CHECKING

from odf_flight.serving import flight_beside
from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_flight import answers as answers
    from odf_flight import callers as callers
    from odf_flight import questions as questions
    from odf_flight import server as server
else:
    __getattr__ = late_modules(__name__)

__all__ = ["flight_beside"]
