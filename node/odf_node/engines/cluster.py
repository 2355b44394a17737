"""The cluster that the operator's settings name, for steps that this node publishes.

Source: clauses CLUSTER-1 to CLUSTER-3 in ``spec/extensions/engine-cluster.md``.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from odf_engines.cluster import LOCAL_MASTER, Cluster
from odf_engines.contract import Limits
from odf_engines.engine import ClusterEngine, EngineSession
from odf_node.configuration.declaration import Engines
from odf_node.engine_workspace import EngineWorkspace, sweep_workspaces


def find_cluster(settings: Engines) -> Cluster | None:
    """Return the cluster that settings, as they were checked when they were read, name; None: they name none."""
    if settings.spark_master == LOCAL_MASTER or settings.spark_shared_folder is None or settings.spark_secret is None:
        return None
    return Cluster(
        master=settings.spark_master,
        shared_folder=settings.spark_shared_folder,
        secret=settings.spark_secret,
        driver_address=settings.spark_driver_address or "",
        cores=settings.spark_cores,
        executor_cores=settings.spark_executor_cores,
        executor_memory_bytes=settings.spark_executor_memory_bytes,
    )


@contextmanager
def opened_on_cluster(engine: ClusterEngine, cluster: Cluster, limits: Limits) -> Iterator[EngineSession]:
    """Open a session whose files are in the shared folder; they are gone with the block.

    Raises:
        ClusterUnavailableError: The cluster cannot be reached, or this machine is not ready for it.
        SandboxUnavailableError: Isolation does not work here.
        HomeFullError, HomeReadOnlyError: The folder cannot be written to.
    """
    cluster.check_files()
    sweep_workspaces(cluster.shared_folder)
    with (
        closing(EngineWorkspace(cluster.shared_folder)) as workspace,
        engine.open_on_cluster(cluster, workspace.path, limits) as session,
    ):
        yield session
