"""The operation `convert` of the worker."""

from odf_engines.spark.ingest.operation import run_conversion as run

__all__ = ["run"]
