"""The daily job of the shop South: ``python south.py FILE`` upserts its price list."""

import argparse
import csv
from decimal import Decimal
from pathlib import Path

import odf_node

parser = argparse.ArgumentParser()
parser.add_argument("file", type=Path)
parser.add_argument("--decimal-comma", action="store_true", help="prices are written as 2,75")
arguments = parser.parse_args()


def price_of(text: str) -> Decimal:
    """Read a price. Without the option a comma stands between thousands, as in 1,250.00."""
    return Decimal(text.replace(",", "." if arguments.decimal_comma else ""))


with arguments.file.open(newline="") as file:
    prices = [{"shop": "South", **row, "price": price_of(row["price"])} for row in csv.DictReader(file)]

with odf_node.open() as node:
    written = node.table("prices").upsert(prices)

print(f"version {written.version}: {written.added} prices added, {written.corrected} corrected")
