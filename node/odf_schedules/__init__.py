"""Schedules: when which datasets of this node are pulled by themselves.

The daemon finds ``background.SERVICE`` by its entry point; commands find ``command``, ``status.REPORT`` and
``declared_schedule.KIND`` by theirs. What is decided without clock and threads is in ``timetable``.

Source: clauses SCHED-1 to SCHED-12 in ``spec/plug-ins/schedules.md``.
"""
