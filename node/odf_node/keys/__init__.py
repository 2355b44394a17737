"""Who may sign for a dataset: key logs, changes of keys, proofs of two histories by one key, heads and their age."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.keys import disputes as disputes
else:
    __getattr__ = late_modules(__name__)
