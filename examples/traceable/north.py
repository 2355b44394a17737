"""The daily job of the shop North: ``python north.py FILE`` upserts its price list."""

import csv
import sys
from decimal import Decimal
from pathlib import Path

import odf_node

with Path(sys.argv[1]).open(newline="") as file:
    prices = [{"shop": "North", **row, "price": Decimal(row["price"])} for row in csv.DictReader(file)]

with odf_node.open() as node:
    written = node.table("prices").upsert(prices)

print(f"version {written.version}: {written.added} prices added, {written.corrected} corrected")
