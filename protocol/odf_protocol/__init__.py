"""Open Data Fabric without I/O: what a block is, which chains are valid, what a hash or a signature says."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_protocol import accept_policy_text as accept_policy_text
    from odf_protocol import annotate as annotate
    from odf_protocol import base58 as base58
    from odf_protocol import block_traits as block_traits
    from odf_protocol import ed25519 as ed25519
    from odf_protocol import events as events
    from odf_protocol import exchange as exchange
    from odf_protocol import manifest as manifest
    from odf_protocol import schema_arrow as schema_arrow
    from odf_protocol import schema_ddl as schema_ddl
    from odf_protocol import slice_comparison as slice_comparison
    from odf_protocol import transform_plan as transform_plan
else:
    __getattr__ = late_modules(__name__)
