#!/bin/bash
# LeNet on the digits: accuracy, and a run folder with everything in it. TENON_FULL=1: over seeds 1 to 10.
. "$(dirname "$0")/common.bash"

train run --epochs 12 || fail "tenon train ended with $?: $(tail -n 3 "$work/run.err")"
count=1
[ "$(field event "$work/run.json")" = done ] || fail "the last line is no done event: $(tail -n 1 "$work/run.json")"
accuracy=$(field accuracy "$work/run.json")
awk "BEGIN {exit !(\"$accuracy\" + 0 >= 0.98)}" || fail "accuracy $accuracy, at least 0.98 is asked"
[[ $(field params_sha256 "$work/run.json") =~ ^[0-9a-f]{64}$ ]] || fail "no params_sha256"
for file in model-symbol.json model-0000.params run.json curves.svg metrics.jsonl; do
    [ -s "$work/run/$file" ] || fail "the run folder holds no $file"
done
python3 - "$work/run" <<'PY' || fail "a file of the run folder is not what it says"
import json, sys, xml.dom.minidom
folder = sys.argv[1]
json.load(open(folder + "/model-symbol.json"))
json.load(open(folder + "/run.json"))
lines = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
assert lines, "metrics.jsonl is empty"
xml.dom.minidom.parse(folder + "/curves.svg")
PY
[ "$full" = 1 ] || finish
: >"$work/all"
for seed in 1 2 3 4 5 6 7 8 9 10; do
    train seed --epochs 12 || fail "seed $seed: tenon train failed"
    field accuracy "$work/seed.json" >>"$work/all"
    count=$((count + 1))
done
sort -g "$work/all" | awk '{a[NR] = $1} END {print "worst", a[1], "median", (a[5] + a[6]) / 2
    exit !(a[1] >= 0.97 && (a[5] + a[6]) / 2 >= 0.98)}' || fail "worst below 0.97 or median below 0.98"
finish
