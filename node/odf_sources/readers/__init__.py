"""The programs that ask servers for rows, each run by ``odf_node.source_readers`` in a process of its own."""
