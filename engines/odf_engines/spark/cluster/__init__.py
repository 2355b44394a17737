"""Spark beyond one machine: the driver of this node's own steps in a sandbox, their tasks on a standalone cluster."""
