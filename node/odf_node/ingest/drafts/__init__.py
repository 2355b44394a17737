"""A first manifest, guessed from data (ING-24).

A **sample** is the beginning of a file. ``drafting`` finds its encoding, ``records`` its format and columns,
``numbers``, ``dates`` and ``columns`` what the texts of a column mean, ``keys`` which columns tell rows apart;
``manifest_text`` writes what was found, and what is uncertain about it as **doubts** beside it. Nothing here does I/O.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.ingest.drafts import drafting as drafting
else:
    __getattr__ = late_modules(__name__)
