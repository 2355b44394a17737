"""Arrow Flight SQL: a port beside the HTTP one where ADBC and JDBC clients list, ask and read.

Source: ``spec/extensions/flight-sql.md``.
"""

from odf_node.flight.serving import flight_beside

__all__ = ["flight_beside"]
