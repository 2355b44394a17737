"""Engine sessions of one run of the node, and the files that engines hand back."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.engines import adding as adding
    from odf_node.engines import sessions as sessions
else:
    __getattr__ = late_modules(__name__)
