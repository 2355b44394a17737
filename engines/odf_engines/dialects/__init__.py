"""SQL of other engines, as Spark reads it; runs beside the node, and in no engine."""
