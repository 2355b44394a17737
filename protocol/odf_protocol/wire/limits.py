"""What a block may cost before anything in it is believed."""

# guess: blocks hold metadata; the largest things in them are readme files and schemas, tens of kilobytes.
MAX_BLOCK_SIZE_BYTES = 8 * 1024 * 1024

# Default of the FlatBuffers verifiers (C++ and Rust), so of every other reader of these bytes.
MAX_DEPTH = 64

# guess: a schema of 10,000 columns needs some 30,000. Tables are also what decoding time goes into.
MAX_TABLES = 100_000

# The offset to its vtable: what a table cannot do without. So a buffer in which nothing is shared has no more tables.
MIN_TABLE_SIZE_BYTES = 4

# guess: elements of one list (columns, inputs, keywords); a vector of bytes is bounded by the block.
MAX_VECTOR_LENGTH = 65_536
