"""Figures for Prometheus, traces of what runs for OpenTelemetry, and lineage events for OpenLineage.

Commands and the daemon find the three of ``observers``, and ``metrics.FORMAT``, by their entry points.

Source: clauses OBSERVE-4 to OBSERVE-9 and OBSERVE-11 in ``spec/plug-ins/observe.md``.
"""
