"""Convergence: which datasets are behind what they rest on, and what brings them up to date, in order, once.

``graph`` holds what is, ``judging`` finds the state of each dataset, ``impact`` what a change would cost, and
``planner`` the actions that lead to what should be; all of them decide without I/O. ``home_graph`` reads the home.

Source: clauses CONVERGE-1 to CONVERGE-9 in ``spec/plug-ins/convergence.md``.
"""
