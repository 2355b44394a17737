# The fourth chapter of demo.sh, which runs it: two auditors, a newsroom that relies on both, and a publisher with two faces.
# shellcheck shell=bash disable=SC2154

wait_for() { # WHAT COMMAND...: until it succeeds
    local what=$1
    shift
    for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    echo "the demo waited in vain for $what"
    exit 1
}
shows() { # NODE TEXT: whether its list does
    odf-node list --home "$1" | grep -q "$2"
}

chapter "4. Five organisations that need not know each other"
say "A university audits as well. It pulls, computes everything again, and both auditors sign what they found."
run odf-node pull "$agency_url/countries.daily" "$agency_url/countries.severity" --home university
for node in auditor university; do
    run odf-node verify countries.daily countries.severity --attest --home "$node"
    serve "$node" "$(port_of "$node")"
done
say "A newsroom has no time to compute. Its policy: whatever both of these auditors vouch for, and rumours as they come."
mkdir -p newsroom
cat >newsroom/policies.yaml <<END
kind: AcceptPolicies
version: 1
auditors:
  auditor: $(odf-node inspect node --home auditor)
  university: $(odf-node inspect node --home university)
rules:
  - datasets: [rumours]
    accept: integrity
default:
  accept: attested
  threshold: 2
END
run cat newsroom/policies.yaml
serve newsroom "$(port_of newsroom)"
for node in auditor university; do run odf-node peer add "$(url_of "$node")" --home newsroom; done
say "It subscribes. What the auditors signed comes by gossip, the data from the agency, and nothing is done by hand:"
run odf-node subscribe "$agency_url/countries.daily" "$agency_url/countries.severity" --home newsroom
wait_for "the newsroom's copy" shows newsroom 'countries.severity.*attested'
run odf-node list --home newsroom
run odf-node trust countries.severity --home newsroom

say "The fifth one publishes rumours, and tells the newsroom another story than the auditor: same key, same place in the history."
run odf-node add "$here/rumours.yaml" --home gossipmonger
cp -r gossipmonger twin
for story in "gossipmonger 12" "twin 12000"; do
    read -r node figure <<<"$story"
    printf '{"event_time": "2020-11-01T00:00:00Z", "rumour": "cases nobody counted", "people": %s}\n' "$figure" >"$node.ndjson"
    # A node remembers outside of its home what it signed, and stops before it signs a second history. A liar forgets.
    show ODF_NODE_SIGNED_MARKS= odf-node ingest rumours "$node.ndjson" --home "$node"
    ODF_NODE_SIGNED_MARKS='' odf-node ingest rumours "$node.ndjson" --home "$node"
    serve "$node" "$(port_of "$node")"
done
run odf-node pull "$(url_of gossipmonger)/rumours" --home newsroom
run odf-node pull "$(url_of twin)/rumours" --home auditor
say "Neither could know. But they gossip about what they were shown:"
wait_for "the proof" shows newsroom 'rumours.*frozen'
run odf-node list --home newsroom
run odf-node evidence show rumours --home newsroom
run odf-node evidence export rumours --to proof.json --home newsroom
say "Whoever gets this file can judge by themselves, without a network and without trust in who sent it:"
run odf-node judge proof.json
