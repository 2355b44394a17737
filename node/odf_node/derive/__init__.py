"""Derivative datasets: the next step, and re-execution of recorded steps."""
