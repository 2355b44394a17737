#!/usr/bin/env bash
# Organisations exchange real data: a health agency publishes, an auditor re-executes and accepts, a forger is rejected.
# Then there are five of them: a newsroom takes what two auditors vouch for, and a liar is found out (network.sh).
#
# Every step is an ordinary odf-node command, printed before it runs; read from top to bottom, this is the tutorial.
# Two small programs stand beside it, because a good node offers neither: cut_cable.py breaks a connection in the middle
# of a download, and forge.py does what a careful forger would do.
#
#   examples/covid/demo.sh            run it all in a temporary folder
#   DEMO_FOLDER=/some/folder ...      keep what the nodes leave behind
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
python=$(cd "$here/../.." && pwd)/.venv/bin/python
[ -x "$python" ] || python=$(command -v python3)
export PATH="$(dirname "$python"):$PATH"

folder=${DEMO_FOLDER:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder"
agency_port=${AGENCY_PORT:-18801} forger_port=${FORGER_PORT:-18802} cable_port=${CABLE_PORT:-18803}
export ODF_NODE_SIGNED_MARKS=$folder/signed-marks  # else what this machine remembers of its keys would outlive the demo
started=$(date +%s)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true
      [ -n "${DEMO_FOLDER:-}" ] || rm -rf "$folder"' EXIT

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
chapter() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
say() { printf '%s%s%s\n' "$dim" "$*" "$plain"; }
show() { # COMMAND...: as one would type it
    local word line=''
    for word in "$@"; do
        [[ $word == *[[:space:]\']* ]] && word="\"$word\""
        line+=" $word"
    done
    printf '\n%s$%s%s\n' "$bold" "$line" "$plain"
}
run() { show "$@"; "$@"; }
expect_failure() { # EXIT_CODE COMMAND...
    local expected=$1 code=0
    shift
    show "$@"
    "$@" || code=$?
    [ "$code" -eq "$expected" ] || { echo "the demo expected exit code $expected, found $code"; exit 1; }
    say "(exit code $code)"
}
later() { # NAME COMMAND...: somebody else does this while we look elsewhere
    local name=$1
    shift
    { show "$@"; "$@"; } >"$name.out" 2>&1 &
    echo $! >"$name.pid"
}
came_to() { # NAME: what they did, and how it ended
    local code=0
    wait "$(cat "$1.pid")" || code=$?
    cat "$1.out"
    [ "$code" -eq 0 ] || exit 1
}
checksum() { # of everything that a node keeps; its staging area aside, and rows that it can write again for its engines
    (cd "$1" && find . \( -path ./staging -o -path ./rows \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
}
expect_rejection() { # COMMAND...: by the auditor; nothing of what it keeps may change
    local before after
    before=$(checksum auditor)
    expect_failure 4 "$@"
    after=$(checksum auditor)
    say "checksum of the auditor's whole node: before $before, after $after"
    [ "$before" = "$after" ] || { echo "the rejection changed something"; exit 1; }
}
serve() { # NODE PORT: in the background, ready when it says so
    printf '\n%s$ odf-node serve --home %s --http-port %s &%s\n' "$bold" "$1" "$2" "$plain"
    odf-node serve --home "$1" --http-port "$2" --ready-file "$1.ready" 2>"$1.log" &
    pids+=($!)
    for _ in $(seq 3000); do [ -s "$1.ready" ] && break; sleep 0.1; done
    [ -s "$1.ready" ] || { cat "$1.log"; exit 1; }
    cat "$1.ready"
}
url_of() { cat "$1.ready"; }
publish_version() { # DAY: the publisher of the outside world overwrites its file; the agency pulls
    cp "$here/data/countries-aggregated-$1.csv.gz" countries-aggregated.csv.gz
    run odf-node pull countries.daily countries.severity --home agency --system-time "$1T12:00:00Z"
}
export COVID_SOURCE="file://$folder/countries-aggregated.csv.gz"

chapter "1. A health agency turns a file that is overwritten every day into a history"
say "countries.daily polls the file; countries.severity is a declared query over it."
run odf-node add "$here/countries.daily.yaml" "$here/countries.severity.yaml" --home agency --system-time 2020-10-01T00:00:00Z
for day in 2020-10-01 2020-10-02 2020-10-03 2020-10-08; do publish_version "$day"; done
run odf-node list --home agency
say "Every version became one more slice. What the file silently rewrote is here as corrections:"
run odf-node sql --home agency -c "
  SELECT system_time, op, count(*) AS rows FROM countries.daily GROUP BY system_time, op ORDER BY system_time, op"

say "Cases per 100,000 people: each day is joined with the population as it was known on that day (countries.incidence.yaml)."
export POPULATION_SOURCE=$here/data
run odf-node add "$here/population.yaml" "$here/countries.incidence.yaml" --home agency --system-time 2020-10-08T13:00:00Z
run odf-node pull population countries.incidence --home agency --system-time 2020-10-08T14:00:00Z
say "The newest population is of 1 October; days after it wait until somebody says that no other version of theirs will come."
run odf-node pull population --set-watermark 2020-10-08T00:00:00Z --home agency --system-time 2020-10-08T15:00:00Z
run odf-node pull countries.incidence --home agency --system-time 2020-10-08T15:00:00Z
run odf-node sql --home agency -c "
  SELECT event_time, confirmed, population, confirmed_per_100000, system_time FROM countries.incidence
  WHERE country = 'Mexico' AND event_time IN ('2020-04-19', '2020-09-30', '2020-10-01', '2020-10-02') ORDER BY event_time"
run odf-node log countries.incidence --home agency

chapter "2. The agency serves; an auditor pulls, re-executes and accepts"
serve agency "$agency_port"
agency_url=$(url_of agency)
say "The auditor's line is bad: it breaks after 250 kB."
exec {line}< <("$python" "$here/cut_cable.py" "$cable_port" "${agency_url##*:}" 250000)
pids+=($!)
read -r cable_port <&"$line" # which says that somebody listens there
expect_failure 5 odf-node pull "http://127.0.0.1:$cable_port/countries.daily" --home auditor
cat <&"$line"
unset 'pids[-1]' # it has ended
say "What had arrived was kept; over another line the pull goes on from there:"
run odf-node pull "$agency_url/countries.daily" --home auditor
run odf-node pull "$agency_url/countries.severity" --home auditor
run odf-node list --home auditor
run odf-node log countries.severity --home auditor
run odf-node log countries.severity --home auditor --limit 1 --output-format yaml
run odf-node tail countries.severity --home auditor -n 5
run odf-node inspect trust countries.severity --home auditor
run odf-node verify countries.daily --home auditor
say "Time travel: how many cases had there been by the end of September? The answer of 1 October, and that of 8 October."
question="SELECT country, confirmed, deaths FROM countries.daily__state WHERE event_time = '2020-09-30' AND country IN ('Czechia', 'India', 'Spain') ORDER BY country"
run odf-node sql --home auditor --as-of 2020-10-01T23:59:59Z -c "$question"
run odf-node sql --home auditor --as-of 2020-10-08T23:59:59Z -c "$question"
say "What happened in between was not lost either (op 2 and 3: corrected from, corrected to):"
run odf-node sql --home auditor -c "SELECT system_time, op, country, confirmed, deaths FROM countries.daily WHERE event_time = '2020-09-30' AND country IN ('Czechia', 'India', 'Spain') ORDER BY country, offset"

chapter "3. A forger comes first with the newest version"
publish_version 2020-11-01
later university odf-node pull "$agency_url/countries.daily" "$agency_url/countries.severity" --home university
say "The forger holds an honest copy of everything..."
run odf-node pull "$agency_url/countries.daily" "$agency_url/countries.severity" --home forger --policy integrity
say "...and changes one figure of one row in the newest slice: slice, hashes, block, signatures rebuilt under a key of its own."
run python "$here/forge.py" --home forger --country Italy --day 2020-10-31 --deaths-minus 1000 --own-key
serve forger "$forger_port"
forger_url=$(url_of forger)
run odf-node pull "$agency_url/countries.daily" --home auditor
expect_rejection odf-node pull "$forger_url/countries.severity" --home auditor
say "Now the forger has stolen the agency's key: every signature is right."
run python "$here/forge.py" --home forger --stolen-key agency
expect_rejection odf-node pull "$forger_url/countries.severity" --home auditor
say "The rejected slice and the report are kept as evidence:"
run odf-node inspect refusals --home auditor
say "The honest version is accepted, re-executed as always:"
run odf-node pull "$agency_url/countries.severity" --home auditor
run odf-node list --home auditor

# shellcheck source=examples/covid/network.sh
. "$here/network.sh"

chapter "What you saw"
cat <<END
  A file that is overwritten every day became a history in which nothing is lost: who asks what was
  known on a day gets the answer of that day.

  The agency published data and the query that derives more data from it. The auditor trusted neither
  the agency nor the wire: every hash was checked, and every derived row was computed again in a sandbox
  without a network, before it was accepted.

  A forged figure was rejected twice: once because the key was wrong, and once, with the key stolen,
  because the declared query gives another number for that very cell.

  The newsroom computed nothing and fetched nothing by hand. It took the figures, minutes after they were
  published, because two auditors of its choice had each checked every single one; the word of one would not
  have been enough.

  Somebody told two readers two different stories and signed both. The readers' nodes compared notes, and
  found out within seconds. What they hold now is a proof that anybody can check and nobody can deny, because
  the liar's own signatures are what it is made of.

  All of it took $(( $(date +%s) - started )) seconds.
END
