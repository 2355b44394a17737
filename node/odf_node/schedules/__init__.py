"""Schedules: when which datasets of this node are pulled by themselves (SCHED)."""
