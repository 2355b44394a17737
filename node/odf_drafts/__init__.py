"""A first manifest, guessed from data (ING-24): behind ``odf-node new``.

A **sample** is the beginning of a file, which ``samples`` reads. ``drafting`` finds its encoding, ``records`` its
format and columns, ``numbers``, ``dates`` and ``columns`` what the texts of a column mean, ``keys`` which columns tell
rows apart; ``manifest_text`` writes what was found, and what is uncertain about it as **doubts** beside it. Only
``samples`` and ``command`` do I/O.
"""
