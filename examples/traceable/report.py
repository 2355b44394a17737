"""What a breakfast costs in each shop: ``python report.py [VERSION ...]``, a column for each version of the prices."""

import sys
from collections import defaultdict
from decimal import Decimal

import odf_node

BREAKFAST = {"bread": 1, "milk": 2, "coffee": 1}

with odf_node.open() as node:
    newest = node.table("prices").history()[0].version
    versions = [int(word) for word in sys.argv[1:]] or [newest]
    costs: dict[str, dict[int, Decimal]] = defaultdict(lambda: dict.fromkeys(versions, Decimal(0)))
    for version in versions:
        for row in node.table("prices", version=version).state().to_arrow().to_pylist():
            costs[row["shop"]][version] += BREAKFAST[row["product"]] * row["price"]

print("shop ", *(f"{f'version {version}':>11}" for version in versions))
for shop, by_version in sorted(costs.items()):
    print(shop, *(f"{by_version[version]:>11}" for version in versions))
