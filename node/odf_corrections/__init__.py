"""A plug-in: what is set right by hand, and the sinks that hand bad rows to those who can.

``quarantine fix`` fixes rows that wait, ``correct`` retracts or corrects current rows, and sinks are given what ingests
set aside. That bad rows are kept, shown, sent again and given up is the core's.

Source: ``spec/plug-ins/corrections.md``.
"""
