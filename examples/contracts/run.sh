#!/usr/bin/env bash
# A publisher swaps day and month; the stage behind it holds that file, and who reads that stage sees nothing of it.
# Three real nodes, each a home and a daemon: a source, a processor and a consumer.
#
#   examples/contracts/run.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
python=$(cd "$here/../.." && pwd)/.venv/bin/python
[ -x "$python" ] || python=$(command -v python3)
export PATH="$(dirname "$python"):$PATH"

folder=$(mktemp -d)
daemons=()
finish() {
    for each in "${daemons[@]}"; do kill "$each" 2>/dev/null || true; wait "$each" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
export COVID_SOURCE=file://$folder/in.csv.gz

run() { printf '\n$ odf-node %s\n' "$*"; odf-node "$@"; }
say() { printf '\n# %s\n' "$*"; }
serve() { # NODE: leaves its address in NODE.url
    odf-node serve --http-port 0 --ready-file "$1.url" --home "$1" 2>"$1.log" &
    daemons+=($!)
    for _ in $(seq 240); do [ -s "$1.url" ] && return; sleep 0.5; done
    cat "$1.log"
    return 1
}
url_of() { grep -o 'http://[^" ]*' "$1.url" | head -n 1 | sed 's:/$::'; }
publish() { # DAY [swapped]: the source ingests the file of a day
    if [ "${2:-}" = swapped ]; then
        gzip -dc "$here/data/countries-aggregated-$1.csv.gz" | sed -E 's/^([0-9]{4})-([0-9]{2})-([0-9]{2}),/\1-\3-\2,/' | gzip >in.csv.gz
    else
        cp "$here/data/countries-aggregated-$1.csv.gz" in.csv.gz
    fi
    run pull countries.daily --system-time "$1T12:00:00Z" --home source
}
process() { # DAY
    run pull countries.daily --home processor
    run pull countries.severe --home processor
}
consume() { # DAY
    run pull "$(url_of processor)/countries.severe" --policy integrity --home consumer
    run sql -c "SELECT max(CAST(event_time AS DATE)) AS newest, count(*) AS n FROM countries.severe__state" -o csv --home consumer
}

say "The source publishes six honest days, and the processor takes them."
odf-node add "$here/countries.yaml" --system-time 2020-09-01T12:00:00Z --home source
for day in 03 04 05 06 07 08; do publish "2020-09-$day"; done
odf-node publish countries.daily --home source
serve source
run pull "$(url_of source)/countries.daily" --home processor

say "From these days the processor learns what the source's data look like, and holds what does not."
run contract suggest countries.daily --output learned.odcs.yaml --home processor
run contract add learned.odcs.yaml --home processor
odf-node add "$here/severe.yaml" --home processor
process 2020-09-08
odf-node publish countries.severe --home processor
serve processor
consume 2020-09-08

say "On the next day the publisher writes 2020-22-01 for 22 January. A third of the file is read as other days."
publish 2020-09-09 swapped
process 2020-09-09
run status --home processor
run contract explain learned --rows 2 --home processor

say "The consumer asks as every day, and has the last good version."
consume 2020-09-09

say "The next file is right again. Nobody has to do anything."
publish 2020-09-10
process 2020-09-10
run status --home processor
consume 2020-09-10
