#!/usr/bin/env bash
# A day on which a publisher swapped day and month, with the real files. Each step is ordinary odf-node commands.
#
#   examples/dirty-day/run.sh              all of it, in a temporary home
#   examples/dirty-day/run.sh added ...    single steps, in the home that ODF_NODE_HOME names: added, refused, mended, healed
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
python=$(cd "$here/../.." && pwd)/.venv/bin/python
[ -x "$python" ] || python=$(command -v python3)
export PATH="$(dirname "$python"):$PATH"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ODF_NODE_HOME=${ODF_NODE_HOME:-$folder/home}
export COVID_SOURCE=file://$folder/countries-aggregated.csv.gz
manifest=$here/../covid/countries.daily.yaml

publish() { cp "$here/data/countries-aggregated-$1.csv.gz" "$folder/countries-aggregated.csv.gz"; }
run() { printf '\n$ odf-node %s\n' "$*"; odf-node "$@"; }

added() { run add "$manifest" --system-time 2020-09-01T12:00:00Z; }

refused() { # On 2 September dates are 2020-22-01. 38 % of them can be read all the same, as another day.
    publish 2020-09-02
    local code=0
    run pull countries.daily --system-time 2020-09-02T12:00:00Z || code=$?
    [ "$code" = 7 ]
}

mended() { # The manifest says how dates are written, and the same file goes through.
    sed "s/^\( *\)header: true$/&\n\1dateFormat: '%Y-%d-%m'/" "$manifest" > "$folder/swapped.yaml"
    run change countries.daily "$folder/swapped.yaml" --system-time 2020-09-02T12:10:00Z
    publish 2020-09-02
    run pull countries.daily --system-time 2020-09-02T12:20:00Z
}

healed() { # The publisher is right again, and so is the manifest: a day more, and what was really revised.
    run change countries.daily "$manifest" --system-time 2020-09-03T11:00:00Z
    publish 2020-09-03
    run pull countries.daily --system-time 2020-09-03T12:00:00Z
    run sql -c "SELECT op, count(*) AS n, min(CAST(event_time AS DATE)) AS first FROM countries.daily
                WHERE system_time > TIMESTAMP '2020-09-03 00:00:00Z' GROUP BY op ORDER BY op" -o csv
}

[ $# -gt 0 ] || set -- added refused mended healed
for step; do "$step"; done
