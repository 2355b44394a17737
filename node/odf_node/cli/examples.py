"""Examples of every command, for its help.

Words stand for what the caller has: ``sales`` and ``totals`` are datasets, ``peer.example`` another node.
"""

import shlex
from typing import Final

EXAMPLES: Final = """\
new sales --from sales.csv -o sales.yaml
new sales -o sales.yaml
add sales.yaml totals.yaml
add --replace sales.yaml
pull sales totals
pull http://peer.example:8080/prices --as peer.prices
pull --all
ingest sales sales-2024-05.csv
ingest sales --stdin < sales.csv
ingest sales sales.csv --dry-run
quarantine list sales
quarantine show sales
quarantine export sales --output-path rows.ndjson
quarantine fix sales --file rows.ndjson
quarantine fix sales 3.1 --set "price=2.50"
quarantine resend sales
quarantine drop sales 3.1
quarantine deliver sales
correct sales --retract --where "id = 17" --reason "entered twice"
correct sales --set "price=2.50" --where "id = 17" --reason "a slip of the pen" --dry-run
list
list http://peer.example:8080
search umsatz
search price shop --far
tail sales -n 20
sql
sql -c "SELECT count(*) FROM sales__state"
sql --as-of 2024-05-01 -o csv -c "SELECT * FROM sales" --output-path sales.csv
log sales
log sales --all -o yaml
inspect schema sales
inspect query totals
inspect plan totals
inspect plan totals.yaml
inspect lineage totals
inspect lineage totals -o mermaid
inspect trust totals
inspect histories sales
inspect refusals
inspect refusals 30b1a44fc23f
inspect node
inspect audit -n 20
inspect block block.bin
inspect data slice.parquet
change sales sales.yaml --dry-run
change sales sales.yaml
rename sales shop.sales
delete old.sales --dry-run
delete old.sales
serve
serve --address 0.0.0.0 --http-port 8080
serve --config odf-node.toml --check
push sales --to http://peer.example:8080/sales
import /media/stick/sales
import sales.tar --as their.sales
export sales totals --to /media/stick
export sales --to sales.tar
publish sales
publish --off sales
token create newsroom --dataset sales
token create auditor --read sales --expires 2026-12-31
token list
token revoke 5f3a9c21
login https://peer.example
login --check https://peer.example
logout https://peer.example
repo add partner https://peer.example
repo list
repo delete partner
repo alias add --pull sales partner/sales
repo alias list
repo alias delete sales partner/sales
peer add https://peer.example
peer list
peer delete https://peer.example
subscribe prices
subscribe --list
subscribe --off prices
verify sales totals
verify totals --recursive --attest
verify http://peer.example:8080/prices
trust
trust totals
trust --with policies.yaml
locate prices.parquet http://peer.example:8080/prices --slice f16205603b882e
evidence show prices
evidence export 8c1d3f --to evidence.json
evidence settle prices --reason "the publisher lost the newer chain and said so"
evidence recover prices --from http://peer.example:8080/prices
evidence renew prices
judge evidence.json
key show sales
key rotate sales
key prepare sales --to /media/stick/sales.pem
key recover sales --with /media/stick/sales.pem --stolen-from 41
status
status -o json
schedule
schedule --failing
completion bash > ~/.local/share/bash-completion/completions/odf-node
doctor
engine list
engine inspect spark
engine add flink flink.tar
engine remove flink
engine export spark spark.tar
engine prepare
image list
image add fetcher fetcher.tar --network
image remove fetcher
cache list
cache drop totals
cache rebuild totals
cache clear
gc --dry-run
gc
scrub
scrub --rate 20000000
repair
repair sales --from http://peer.example:8080
backup /media/stick/node --keys keys.tar
restore /media/stick/node --keys keys.tar
"""
"""A line each, without the program's name."""


def examples_of(words: str) -> list[str]:
    """Return the examples of a command, or of an action: ``quarantine show``."""
    begin = words.split()
    return [line for line in EXAMPLES.splitlines() if shlex.split(line)[: len(begin)] == begin]
