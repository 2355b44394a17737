"""Root datasets: fetch, read, merge and commit what outside sources have."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.ingest import batch as batch
    from odf_node.ingest import changed_sources as changed_sources
    from odf_node.ingest import correcting as correcting
    from odf_node.ingest import ingest_rules as ingest_rules
    from odf_node.ingest import ingestion as ingestion
    from odf_node.ingest import manifest_check as manifest_check
    from odf_node.ingest import mending as mending
    from odf_node.ingest import push_sources as push_sources
    from odf_node.ingest import resending as resending
    from odf_node.ingest import sinking as sinking
else:
    __getattr__ = late_modules(__name__)
