"""Programs of ours that run confined: how one is started, asked and ended, and how it answers.

Outside, ``process`` starts a program in the sandbox and watches it, and ``program`` asks it. Inside, ``entry`` takes
the limits of the kernel on and runs the program's module, whose ``service`` takes requests and answers them. Both sides
exchange ``messages``. What the sandbox contains, and its layers, are in ``sandbox``.

Source: clauses SANDBOX-4 and SANDBOX-7 to SANDBOX-10 in ``spec/extensions/sandbox.md``.
"""
