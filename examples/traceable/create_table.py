"""Creates the table with the prices of all shops."""

import odf_node

with odf_node.open() as node:
    node.create_table("prices", "shop STRING, product STRING, price DECIMAL(8, 2)", key=["shop", "product"])
