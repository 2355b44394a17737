"""Open Data Fabric without I/O: what a block is, which chains are valid, what a hash or a signature says."""
