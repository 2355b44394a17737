# The fourth chapter, read by demo.sh: two auditors, a newsroom that relies on both, and a publisher with two faces.
# shellcheck shell=bash disable=SC2154  # what it uses is made by demo.sh

wait_for() { # SECONDS WHAT COMMAND...: until it succeeds
    local left=$(($1 * 2)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $((left--)) -gt 0 ] || { echo "the demo waited in vain for $what"; tail -n 20 ./*.log; exit 1; }
        sleep 0.5
    done
}
shows() { # NODE PATTERN: whether its list does
    odf-node list --home "$1" | grep -q "$2"
}

export ODF_NODE_GOSSIP_ROUND_MILLISECONDS=500 # usually two seconds: who watches does not like to wait

chapter "4. Five organisations that need not trust each other"
say "In the meantime a university has audited as well: it pulled, and computed everything again."
came_to university
say "Both auditors check every row of the agency's table too, and sign what they found. From now on they say so to whoever asks."
for node in auditor university; do
    run odf-node verify countries.daily --attest --home "$node"
    serve "$node" 0
done
odf-node add "$here/rumours.yaml" --home gossipmonger >/dev/null
echo '{"event_time": "2020-10-01T00:00:00Z", "rumour": "beds are getting scarce", "people": 30}' >first.ndjson
later rumours odf-node ingest rumours first.ndjson --home gossipmonger
say "A newsroom has no time to compute. Its rule: what both of these auditors vouch for is good enough to print."
mkdir -p newsroom
cat >newsroom/policies.yaml <<END
kind: AcceptPolicies
version: 1
auditors:
  auditor: $(odf-node inspect node --home auditor)
  university: $(odf-node inspect node --home university)
rules:
  - datasets: [rumours]
    accept: integrity       # whatever is signed
default:
  accept: attested
  threshold: 2
END
run cat newsroom/policies.yaml
serve newsroom 0
say "It subscribes before it knows any auditor, so for now there is nothing that it may take..."
run odf-node subscribe "$agency_url/countries.daily" "$agency_url/countries.severity" --home newsroom
wait_for 300 "the newsroom's first try" grep -q subscription-waits newsroom.log
run odf-node list --home newsroom
say "...and then is told where the auditors are. Nobody pulls anything by hand from here on:"
for node in auditor university; do run odf-node peer add "$(url_of "$node")" --home newsroom; done
for name in countries.daily countries.severity; do
    wait_for 300 "the newsroom's copy" grep -q "subscription-updated.*\"$name\"" newsroom.log
done
run odf-node list --home newsroom
run odf-node trust countries.severity --home newsroom

say "The fifth one publishes rumours. It began honestly:"
came_to rumours
say "Then it has one story for the newsroom, and another for the auditor: that there is nothing to tell."
cp -r gossipmonger twin
echo '{"event_time": "2020-11-01T00:00:00Z", "rumour": "cases nobody counted", "people": 12000}' >second.ndjson
# A node remembers outside of its home what it signed, and stops before it signs a second story. A liar forgets.
ODF_NODE_SIGNED_MARKS='' run odf-node ingest rumours second.ndjson --home gossipmonger
ODF_NODE_SIGNED_MARKS='' run odf-node pull rumours --set-watermark 2020-11-02 --home twin
for node in gossipmonger twin; do serve "$node" 0; done
run odf-node pull "$(url_of gossipmonger)/rumours" --home newsroom
run odf-node pull "$(url_of twin)/rumours" --home auditor
say "Neither of the two could see the lie. But nodes tell each other which newest signature they were shown:"
wait_for 300 "the proof" shows newsroom 'rumours.*FROZEN'
run odf-node list --home newsroom
run odf-node evidence show rumours --home newsroom
run odf-node evidence export rumours --to proof.json --home newsroom
say "Whoever gets this file can judge for themselves, offline, without trust in who sent it:"
expect_failure 4 odf-node judge proof.json
