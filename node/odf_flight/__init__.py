"""Arrow Flight SQL: a port beside the HTTP one where ADBC and JDBC clients list, ask and read.

Source: ``spec/plug-ins/flight-sql.md``.
"""

from odf_flight.serving import flight_beside

__all__ = ["flight_beside"]
